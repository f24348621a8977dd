package platform

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/imageref"
)

// fields checks each field of a struct, or of the structs in a list, at path by its tags: is names
// the rule for a text or a number, for each item of a list, and for the values of a mapping; key the
// rule for the keys of a mapping; least says what must be there; unique names the field in which the
// items of a list differ. Enums has further rules. A field with omitempty may be empty.
func (v *validator) fields(path string, of reflect.Value) {
	switch of.Kind() {
	case reflect.Pointer:
		if !of.IsNil() {
			v.fields(path, of.Elem())
		}
	case reflect.Slice:
		for i := 0; of.Type().Elem().Kind() == reflect.Struct && i < of.Len(); i++ {
			v.fields(fmt.Sprintf("%s[%d]", path, i), of.Index(i))
		}
	case reflect.Struct:
		for f, value := range of.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			v.field(strings.TrimPrefix(path+"."+name, "."), f, value, options == "omitempty")
			if allowed := Enums()[of.Type().Name()+"."+name]; len(allowed) > 0 && !slices.Contains(allowed, value.String()) {
				v.Add(strings.TrimPrefix(path+"."+name, "."), document.Shown(value.String()), document.OneOf(allowed...))
			}
			v.fields(strings.TrimPrefix(path+"."+name, "."), value)
		}
	}
}

func (v *validator) field(at string, f reflect.StructField, value reflect.Value, optional bool) {
	if want := f.Tag.Get("least"); want != "" && value.Len() == 0 {
		v.Add(at, "nothing", want)
	}
	if key := f.Tag.Get("unique"); key != "" {
		items := value.Type().Elem()
		i := slices.IndexFunc(slices.Collect(items.Fields()), func(f reflect.StructField) bool { return jsonName(f) == key })
		v.unique(at, key, value.Len(), func(n int) string { return value.Index(n).Field(i).String() })
	}
	if rule := f.Tag.Get("key"); rule != "" {
		for _, key := range slices.Sorted(maps.Keys(value.Interface().(map[string]string))) {
			rules()[rule](v, at+"."+key, key)
		}
	}
	rule := rules()[f.Tag.Get("is")]
	if rule == nil {
		return
	}
	switch value.Kind() {
	case reflect.Slice:
		for i := range value.Len() {
			rule(v, fmt.Sprintf("%s[%d]", at, i), value.Index(i).String())
		}
	case reflect.Map:
		texts := value.Interface().(map[string]string)
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			rule(v, at+"."+key, texts[key])
		}
	case reflect.String:
		if value.Len() > 0 || !optional {
			rule(v, at, value.String())
		}
	default:
		rule(v, at, fmt.Sprint(value.Interface()))
	}
}

// jsonName is the name of a field in platform.yaml; empty if it has none.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Enums are the values of fields that have only some, by type and name.
func Enums() map[string][]string {
	return map[string][]string{
		"Release.apiVersion": {APIVersion},
		"SecretKey.generate": {string(Password), string(Token), string(Literal), string(CopyOf), string(Given)},
		"Component.kind":     Kinds(),
		"Migration.when":     {string(Before), string(After)},
		"Remove.claims":      {RemoveDelete, RemoveKeep},
		"Remove.crds":        {RemoveDelete, RemoveKeep, RemoveUnused},
		"Finalizers.then":    {FinalizerStrip, FinalizerReport},
	}
}

// rule checks a text at a field.
type rule func(v *validator, at, text string)

// rules are those that the tag is and the tag key name.
func rules() map[string]rule {
	return map[string]rule{
		"name":            matches(nameRE, nameWant),
		"text":            matches(textRE, "a name"),
		"version":         matches(versionRE, versionWant),
		"key":             matches(keyRE, "letters, digits, dots, hyphens and underscores"),
		"label":           matches(labelRE, "a label's key such as app.kubernetes.io/name"),
		"labelValue":      matches(valueRE, "a label's value: letters, digits, dots, hyphens and underscores"),
		"nodeLabel":       matches(nodeLabelRE, "a label such as storage=fast"),
		"groupKind":       matches(groupKindRE, "group/Kind such as apps/Deployment, or Kind"),
		"repository":      matches(repositoryRE, "owner/name"),
		"user":            matches(workloadRE, "a Deployment or StatefulSet such as Deployment shop/web"),
		"urlPath":         matches(urlPathRE, "a path that starts with /"),
		"status":          between(100, 599, "an HTTP status"),
		"wave":            between(0, MaxWave, fmt.Sprintf("0 to %d", MaxWave)),
		"retain":          between(1, maxRetain, fmt.Sprintf("1 to %d", maxRetain)),
		"deadline":        deadline,
		"namespace":       (*validator).namespace,
		"ownNamespace":    ownNamespace,
		"appNamespace":    appNamespace,
		"component":       componentName,
		"image":           image,
		"reference":       (*validator).reference,
		"service":         service,
		"ourService":      ourService,
		"object":          object,
		"cel":             expression,
		"host":            host,
		"certificateHost": func(v *validator, at, text string) { host(v, at, strings.TrimPrefix(text, "*.")) },
		"suite":           suite,
		"filled":          func(v *validator, at, text string) { v.filled(at, text, TreeNames()...) },
	}
}

func matches(re *regexp.Regexp, want string) rule {
	return func(v *validator, at, text string) { v.Match(at, text, re, want) }
}

func between(least, most int, want string) rule {
	return func(v *validator, at, text string) {
		if n, err := strconv.Atoi(text); err != nil || n < least || n > most {
			v.Add(at, text, want)
		}
	}
}

func deadline(v *validator, at, text string) {
	if d, err := time.ParseDuration(text); err != nil || d < time.Second || d > 24*time.Hour {
		v.Add(at, text, "1s to 24h")
	}
}

// NamespaceWant says what the name of a platform's namespace should be; empty if name is valid.
func NamespaceWant(name string) string {
	switch {
	case !nameRE.MatchString(name):
		return nameWant
	case reservedRE.MatchString(name):
		return "a namespace that is neither Kubernetes' nor Slipway's own"
	}
	return ""
}

func ownNamespace(v *validator, at, name string) {
	if want := NamespaceWant(name); want != "" {
		v.Add(at, document.Shown(name), want)
	}
}

// appNamespace checks a namespace in which Applications may bring objects about.
func appNamespace(v *validator, at, name string) {
	ownNamespace(v, at, name)
	v.notEngines(at, name)
}

// notEngines checks that a namespace is not Argo CD's.
func (v *validator) notEngines(at, namespace string) {
	if engine := v.r.Engine(); engine != nil && engine.Installed() && namespace != "" && namespace == engine.Namespace {
		v.Add(at, document.Quote(namespace)+", which is Argo CD's", "another one: anyone who may write there may do anything")
	}
}

// namespace checks a namespace of the platform's objects.
func (v *validator) namespace(at, name string) {
	names := []string{"default", "kube-system"} // which every cluster has
	for _, n := range v.r.Namespaces {
		names = append(names, n.Name)
	}
	if !slices.Contains(names, name) {
		v.Add(at, document.Shown(name), "one of the namespaces: "+strings.Join(names, ", "))
	}
}

func componentName(v *validator, at, name string) {
	if v.r.component(name) == nil {
		v.Add(at, document.Shown(name), componentWant)
	}
}

const componentWant = "the name of a component in this file"

func image(v *validator, at, image string) {
	if image == "" || imageref.IsShort(image) {
		v.Match(at, image, imageRE, "an image's short name such as postgresql, or a reference such as docker.io/library/redis:8.2")
	} else if _, err := imageref.Parse(image); err != nil {
		v.Add(at, document.Quote(image), "a reference of an image such as docker.io/library/redis:8.2")
	}
}

// reference checks "namespace/name" of an object in one of the platform's namespaces.
func (v *validator) reference(at, value string) {
	namespace, _, ok := parseName(value)
	if !ok {
		v.Add(at, document.Shown(value), "namespace/name")
		return
	}
	v.namespace(at, namespace)
}

func service(v *validator, at, value string) {
	if _, _, _, err := ParseService(value); err != nil {
		v.Add(at, document.Shown(value), "namespace/name:port")
	}
}

// ourService checks a Service in one of the platform's namespaces.
func ourService(v *validator, at, value string) {
	if namespace, _, _, err := ParseService(value); err == nil {
		v.namespace(at, namespace)
		return
	}
	service(v, at, value)
}

func object(v *validator, at, value string) {
	o, err := ParseObject(value)
	if err != nil {
		v.Add(at, document.Shown(value), "an object such as apps/v1/Deployment namespace/name")
	} else if o.Namespace != "" {
		v.namespace(at, o.Namespace)
	}
}

func expression(v *validator, at, text string) {
	const want = "an expression of true or false such as object.status.ready == true"
	if text == "" {
		v.Add(at, "nothing", want)
	} else if _, err := CompileCEL(text); err != nil {
		v.Add(at, document.Quote(text)+" ("+err.Error()+")", want)
	}
}

// host checks the host of a certificate or an address, in which {domain} may stand.
func host(v *validator, at, value string) {
	v.holes(at, value, FillDomain)
	if host := Fill(value, map[string]string{FillDomain: "example.com"}); !hostRE.MatchString(host) {
		v.Add(at, document.Shown(value), "a host such as gitea.{domain}")
	}
}

func suite(v *validator, at, name string) {
	if slices.Contains(ReservedSuites(), name) {
		v.Add(at, document.Quote(name)+", which is about workloads", "another name than "+strings.Join(ReservedSuites(), ", "))
		return
	}
	v.Match(at, name, nameRE, nameWant)
}
