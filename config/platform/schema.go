package platform

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/slipway-sh/slipway/config/platform/internal/rule"
)

// SchemaID identifies the schema of this version.
const SchemaID = "https://slipway.sh/schema/platform-v2.json"

// Schema returns the JSON schema of platform.yaml, for editors and the reference. comments
// describe this package's types and fields, as the reflector's AddGoComments collects
// them. It says what single fields may be; Load also checks how they go together. Where Load
// takes an empty text for none, the schema refuses it.
func Schema(comments map[string]string) *jsonschema.Schema {
	r := jsonschema.Reflector{
		DoNotReference: true, ExpandedStruct: true, Anonymous: true,
		CommentMap: comments,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			if t == reflect.TypeFor[json.RawMessage]() {
				return &jsonschema.Schema{Type: "object"}
			}
			return nil
		},
	}
	s := r.Reflect(&Release{})
	complete(s, reflect.New(reflect.TypeFor[Release]()).Elem())
	s.ID, s.Title, s.Description = SchemaID, "Slipway platform release", "What a platform consists of, and in which order it is installed."
	return s
}

// complete adds to the schema of a struct what its defaults, which v gets, and its
// validation say.
func complete(s *jsonschema.Schema, v reflect.Value) {
	if d, ok := v.Addr().Interface().(interface{ SetDefaults() }); ok {
		d.SetDefaults()
	}
	t := v.Type()
	for i := range t.NumField() {
		name := jsonName(t.Field(i))
		p, ok := s.Properties.Get(name)
		if !ok {
			continue
		}
		p.Description = sentence(p.Description)
		switch value, kind := v.Field(i), t.Field(i).Type; {
		case kind.Kind() == reflect.Pointer:
			complete(p, reflect.New(kind.Elem()).Elem())
		case kind.Kind() == reflect.Struct:
			complete(p, value)
		case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct:
			complete(p.Items, reflect.New(kind.Elem()).Elem())
		case !value.IsZero():
			p.Default = value.Interface()
			s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
		}
		if add := rules()[t.Name()+"."+name]; add != nil {
			add(p)
		}
	}
}

// jsonName is the name of a field in platform.yaml; empty if it has none.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// defaultRE is what a comment says about a default, which a schema has a field for.
var defaultRE = regexp.MustCompile(`; default [^;]*$`)

// sentence is a comment as a sentence.
func sentence(comment string) string {
	s := defaultRE.ReplaceAllString(strings.ReplaceAll(comment, "\n", " "), "")
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

// rules are what validation says of single fields, by type and name.
func rules() map[string]rule.Rule {
	name, version, key, label := matches(nameRE), matches(versionRE), matches(keyRE), rule.Keys(matches(labelRE))
	labels := rule.All(label, rule.Values(matches(valueRE)))
	service, object, reference := matches(serviceRE), matches(objectRE), rule.Match(joined(nameRE, "/", objectNameRE))
	groupKind := matches(groupKindRE)
	host, url, absolute, something := rule.Match("^"+hostPattern+"$"), rule.Match("^https?://[^/]"), rule.Match("^/"), rule.Match(".")
	status := rule.Between(minStatus, maxStatus)
	return map[string]rule.Rule{
		"Release.apiVersion":     rule.OneOf(APIVersion),
		"Release.name":           name,
		"Release.version":        version,
		"Release.upgradableFrom": rule.Each(version),
		"Release.components":     rule.Least(1),
		"Release.settings":       rule.Path,
		"Release.guidance":       rule.Path,
		"Release.approval":       rule.Path,

		"Requirement.secret":    reference,
		"Requirement.configMap": reference,
		"Requirement.keys":      rule.Each(key),
		"Namespace.name":        rule.All(name, rule.Not(matches(reservedRE))),
		"Namespace.labels":      labels,
		"Secret.name":           name,
		"Secret.namespace":      name,
		"Secret.labels":         labels,
		"Secret.keys":           rule.Least(1),
		"SecretKey.key":         key,
		"SecretKey.generate":    rule.OneOf(generates()...),
		"SecretKey.length":      rule.Between(minLength, maxLength),
		"SecretKey.give":        rule.All(matches(giveRE), rule.Not(rule.OneOf(GivenNames()...))),
		"ConfigMap.name":        name,
		"ConfigMap.namespace":   name,
		"ConfigMap.data":        rule.Keys(key),
		"Certificate.secret":    reference,
		"Certificate.hosts":     rule.All(rule.Least(1), rule.Each(rule.Match(`^(\*\.)?`+hostPattern+"$"))),

		"Component.name":        name,
		"Component.kind":        rule.OneOf(Kinds()...),
		"Component.path":        rule.Path,
		"Component.bundle":      matches(imageRE),
		"Component.namespace":   name,
		"Component.after":       rule.Each(name),
		"Component.wave":        rule.Between(0, MaxWave),
		"Component.needs":       rule.Each(name),
		"Component.images":      rule.Each(rule.Match(imagePattern)),
		"Component.valuesFiles": rule.Each(rule.Path),
		"Component.hosts":       rule.All(rule.Keys(host), rule.Values(reference)),
		"Node.label":            rule.Match(joined(labelRE, "=", valueRE)),

		"Await.rollout":        rule.All(object, rule.Also(rule.Match("/("+strings.Join(rollouts(), "|")+") .+/"))),
		"Await.job":            reference,
		"Await.endpoint":       service,
		"Await.synced":         name,
		"HTTPGate.service":     service,
		"HTTPGate.path":        absolute,
		"HTTPGate.status":      status,
		"ConditionGate.object": object,
		"ConditionGate.type":   something,
		"CELGate.object":       object,
		"CELGate.expression":   something,

		"GitOps.engine":          name,
		"GitOps.tree":            rule.Path,
		"Project.name":           name,
		"Project.namespaces":     rule.Each(rule.All(name, rule.Not(matches(reservedRE)))),
		"Project.clusterKinds":   rule.Each(groupKind),
		"Project.kinds":          rule.Each(groupKind),
		"Cluster.name":           name,
		"Cluster.labels":         label,
		"Cluster.annotations":    label,
		"GitServer.component":    name,
		"GitServer.service":      service,
		"GitServer.hosts":        rule.All(rule.Least(1), rule.Each(host)),
		"GitServer.repository":   matches(repositoryRE),
		"Accounts.administrator": reference,
		"Accounts.writer":        reference,
		"Accounts.reader":        reference,

		"Data.name":         name,
		"Data.component":    name,
		"Data.pod":          rule.Path,
		"Data.scratch":      rule.Path,
		"Data.dump":         rule.Least(1),
		"Data.restore":      rule.Least(1),
		"Data.check":        rule.Least(1),
		"Data.users":        rule.Each(matches(workloadRE)),
		"Data.retain":       rule.Between(1, maxRetain),
		"Migration.name":    name,
		"Migration.version": version,
		"Migration.data":    name,
		"Migration.when":    rule.OneOf(Before, After),
		"Migration.command": rule.Least(1),
		"Migration.undo":    rule.Least(1),
		"Change.version":    version,
		"Change.move":       rule.All(rule.Keys(matches(settingRE)), rule.Values(matches(settingRE))),
		"Change.remove":     rule.Each(matches(settingRE)),

		"Remove.order":     rule.Each(name),
		"Remove.claims":    rule.OneOf(claimPolicies()...),
		"Remove.crds":      rule.OneOf(crdPolicies()...),
		"Finalizers.then":  rule.OneOf(finalizerPolicies()...),
		"Phase.name":       rule.Match(`\S`),
		"Phase.steps":      rule.Each(matches(stepRE)),
		"Phase.components": rule.Each(name),
		"Link.name":        something,
		"Link.urlTemplate": url,
		"Link.service":     service,
		"Link.component":   name,
		"Check.name":       something,
		"Check.service":    service,
		"Check.component":  name,
		"Check.path":       absolute,
		"Check.status":     status,

		"Test.name":          name,
		"Test.suites":        rule.All(rule.Least(1), rule.Each(rule.All(name, rule.Not(rule.OneOf(ReservedSuites()...))))),
		"Test.component":     name,
		"Test.path":          rule.Path,
		"Test.namespace":     name,
		"Test.images":        rule.Each(rule.Match(imagePattern)),
		"Workload.name":      name,
		"Workload.component": name,
		"Workload.path":      rule.Path,
		"Workload.namespace": name,
		"Workload.images":    rule.Each(rule.Match(imagePattern)),
		"Workload.check":     rule.Path,
	}
}

// hostPattern is a host in which {domain} may stand.
const hostPattern = `([a-z0-9-]|\{domain\})+(\.([a-z0-9-]|\{domain\})+)*`

// imagePattern is the short name of an image, or a reference.
const imagePattern = `^(([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@sha256:[0-9a-f]{64})?$`

// joined is the pattern of what a matches, sep, and what b matches.
func joined(a *regexp.Regexp, sep string, b *regexp.Regexp) string {
	return strings.TrimSuffix(a.String(), "$") + sep + strings.TrimPrefix(b.String(), "^")
}

func matches(re *regexp.Regexp) rule.Rule { return rule.Match(re.String()) }
