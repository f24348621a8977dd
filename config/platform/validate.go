package platform

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/slipway-sh/slipway/config/document"
)

var (
	nameRE    = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,51}[a-z0-9])?$`)
	imageRE   = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)
	labelRE   = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	valueRE   = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)
	keyRE     = regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}$`)
	versionRE = regexp.MustCompile(`^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
	serviceRE = regexp.MustCompile(`^([a-z0-9-]+)/([a-z0-9-]+):([0-9]{1,5})$`)
	holeRE    = regexp.MustCompile(`\{([^{}]*)\}`)
)

// The range of the length of a generated value.
const (
	minLength = 16
	maxLength = 128
)

// given returns the namespaces that every cluster has.
func given() []string { return []string{"default", "kube-system"} }

func (k SecretKey) random() bool { return k.Generate == Password || k.Generate == Token }

// validator collects the problems of a release.
type validator struct {
	document.List
	r    *Release
	fsys fs.FS
}

// unique reports duplicate names.
func (v *validator) unique(field string, n int, name func(int) string) {
	first := map[string]int{}
	for i := range n {
		if j, ok := first[name(i)]; ok {
			v.Add(fmt.Sprintf("%s[%d].name", field, i), document.Quote(name(i))+" again", fmt.Sprintf("another name than that of %s[%d]", field, j))
			continue
		}
		first[name(i)] = i
	}
}

func (v *validator) release() {
	r := v.r
	if r.APIVersion != APIVersion {
		v.Add("apiVersion", document.Quote(r.APIVersion), APIVersion)
	}
	v.Match("name", r.Name, nameRE, "lower-case letters, digits and hyphens")
	const version = `a semantic version such as "1.0.0"`
	v.Match("version", r.Version, versionRE, version)
	// nil for what Match has reported, and for a pre-release with a leading zero (1.0.0-01),
	// which semantic versioning does not order.
	release, _ := semver.StrictNewVersion(r.Version)
	for i, from := range r.UpgradableFrom {
		field := fmt.Sprintf("upgradableFrom[%d]", i)
		v.Match(field, from, versionRE, version)
		earlier, err := semver.StrictNewVersion(from)
		if err == nil && release != nil && !earlier.LessThan(release) {
			v.Add(field, document.Quote(from), "a version before "+r.Version)
		}
	}
	if slices.ContainsFunc(r.Components, func(c Component) bool { return c.Kind == App }) {
		v.directory("gitops", r.GitOps)
	}
	v.namespaces()
	v.components()
	v.secrets()
	v.links()
	v.checks()
}

// directory checks that path is a directory of the release.
func (v *validator) directory(field, path string) {
	const want = "a directory of the release, as a relative path"
	if !fs.ValidPath(path) || strings.Contains(path, `\`) {
		v.Add(field, document.Quote(path), want)
		return
	}
	info, err := fs.Stat(v.fsys, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.Add(field, document.Quote(path)+", which does not exist", want)
	case err != nil:
		v.Add(field, document.Quote(path)+", which cannot be read", want)
	case !info.IsDir():
		v.Add(field, document.Quote(path)+", which is no directory", want)
	}
}

func (v *validator) namespaces() {
	all := v.r.Namespaces
	v.unique("namespaces", len(all), func(i int) string { return all[i].Name })
	for i, n := range all {
		field := fmt.Sprintf("namespaces[%d]", i)
		v.Match(field+".name", n.Name, nameRE, "lower-case letters, digits and hyphens")
		v.labels(field+".labels", n.Labels)
	}
}

func (v *validator) labels(field string, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !labelRE.MatchString(key) {
			v.Add(field+"."+key, "the key "+document.Quote(key), "a label's key such as app.kubernetes.io/name")
		} else if !valueRE.MatchString(labels[key]) {
			v.Add(field+"."+key, document.Quote(labels[key]), "a label's value: letters, digits, dots, hyphens and underscores")
		}
	}
}

func (v *validator) namespace(field, name string) {
	names := given()
	for _, n := range v.r.Namespaces {
		names = append(names, n.Name)
	}
	if !slices.Contains(names, name) {
		v.Add(field, document.Shown(name), "one of the namespaces: "+strings.Join(names, ", "))
	}
}

// What Slipway installs itself, before Argo CD installs the rest.
const (
	gitServer     = "gitea"
	argoNamespace = "argocd"
)

func isGitServer(c Component) bool {
	return c.Kind == Bootstrap && c.Name == gitServer && c.Bundle == ""
}

func isArgoCD(c Component) bool {
	return c.Kind == Bootstrap && c.Namespace == argoNamespace && c.Bundle != ""
}

func (v *validator) components() {
	all := v.r.Components
	if len(all) == 0 {
		v.Add("components", "nothing", "at least one component")
	}
	v.unique("components", len(all), func(i int) string { return all[i].Name })
	argo := slices.IndexFunc(all, isArgoCD)
	for i, c := range all {
		field := fmt.Sprintf("components[%d]", i)
		v.Match(field+".name", c.Name, nameRE, "lower-case letters, digits and hyphens")
		v.namespace(field+".namespace", c.Namespace)
		if c.Wave < 0 || c.Wave > MaxWave {
			v.Add(field+".wave", fmt.Sprint(c.Wave), fmt.Sprintf("0 to %d", MaxWave))
		}
		if c.Required && !c.Enabled {
			v.Add(field+".enabled", "false", "true, because the component is required")
		}
		for j, need := range c.Needs {
			at := fmt.Sprintf("%s.needs[%d]", field, j)
			if v.component(at, need); need == c.Name {
				v.Add(at, document.Quote(need), "another component than this one")
			}
		}
		for j, image := range c.Images {
			v.Match(fmt.Sprintf("%s.images[%d]", field, j), image, imageRE, "an image's short name such as postgresql")
		}
		switch {
		case c.Kind != App && c.Kind != Bootstrap:
			v.Add(field+".kind", document.Shown(string(c.Kind)), document.OneOf(string(App), string(Bootstrap)))
		case c.Kind == App && c.Bundle != "":
			v.Add(field+".bundle", document.Quote(c.Bundle), "none for an app: Argo CD takes it from the GitOps tree")
		case c.Kind == App && c.Path != "" && !strings.HasPrefix(c.Path, v.r.GitOps+"/") && v.r.GitOps != ".":
			v.Add(field+".path", document.Quote(c.Path), "a directory below "+v.r.GitOps+", the GitOps tree")
		case c.Path == "" && c.Bundle == "":
			v.Add(field+".path", "nothing", "the directory of the component's chart or manifests")
		case c.Kind == Bootstrap && !isGitServer(c) && i != argo:
			v.Add(field+".kind", fmt.Sprintf("bootstrap for %s, which nothing would install", document.Quote(c.Name)),
				"app; bootstrap components are the chart "+gitServer+", and Argo CD as a folder of the bundle in the namespace "+argoNamespace)
		}
		if c.Path != "" {
			v.directory(field+".path", c.Path)
		}
		if c.Bundle != "" {
			v.Match(field+".bundle", c.Bundle, imageRE, "a directory of the bundle's manifests such as argocd")
		}
	}
}

func (v *validator) secrets() {
	all := v.r.Secrets
	v.unique("secrets", len(all), func(i int) string { return all[i].Namespace + "/" + all[i].Name })
	for i, s := range all {
		field := fmt.Sprintf("secrets[%d]", i)
		v.Match(field+".name", s.Name, nameRE, "lower-case letters, digits and hyphens")
		v.namespace(field+".namespace", s.Namespace)
		v.labels(field+".labels", s.Labels)
		if len(s.Keys) == 0 {
			v.Add(field+".keys", "nothing", "at least one key")
		}
		seen := map[string]bool{}
		for j, k := range s.Keys {
			at := fmt.Sprintf("%s.keys[%d]", field, j)
			v.Match(at+".key", k.Key, keyRE, "letters, digits, dots, hyphens and underscores")
			if seen[k.Key] {
				v.Add(at+".key", document.Quote(k.Key)+" again", "each key once")
			}
			seen[k.Key] = true
			v.secretKey(at, k)
		}
	}
}

func (v *validator) secretKey(field string, k SecretKey) {
	if k.Value != "" && k.Generate != Literal {
		v.Add(field+".value", "a value", "none unless generate is literal")
	}
	if k.From != "" && k.Generate != CopyOf && k.Generate != Given {
		v.Add(field+".from", document.Quote(k.From), "none unless generate is copyOf or given")
	}
	if k.Length != 0 && !k.random() {
		v.Add(field+".length", fmt.Sprint(k.Length), "none unless generate is password or token")
	}
	switch k.Generate {
	case Password, Token:
		if k.Length < minLength || k.Length > maxLength {
			v.Add(field+".length", fmt.Sprint(k.Length), fmt.Sprintf("%d to %d characters", minLength, maxLength))
		}
	case Literal:
		if k.Value == "" {
			v.Add(field+".value", "nothing", "the value")
		}
		v.holes(field+".value", k.Value, "domain", "deployment", "adminEmail")
	case CopyOf:
		v.copied(field+".from", k.From)
	case Given:
		if !slices.Contains(GivenNames(), k.From) {
			v.Add(field+".from", document.Shown(k.From), document.OneOf(GivenNames()...))
		}
	default:
		v.Add(field+".generate", document.Shown(string(k.Generate)),
			document.OneOf(string(Password), string(Token), string(Literal), string(CopyOf), string(Given)))
	}
}

// copied checks that from names a generated key, not one that is copied itself.
func (v *validator) copied(field, from string) {
	for _, s := range v.r.Secrets {
		for _, k := range s.Keys {
			if from != s.Namespace+"/"+s.Name+"/"+k.Key {
				continue
			}
			if k.Generate == CopyOf {
				v.Add(field, document.Quote(from)+", which is a copy itself", "the key that it is copied from")
			}
			if k.Generate == Given {
				v.Add(field, document.Quote(from)+", which is given", "generate: given and from: "+k.From)
			}
			return
		}
	}
	v.Add(field, document.Shown(from), "namespace/secret/key of a secret in this file")
}

// holes checks the {names} in a template.
func (v *validator) holes(field, template string, names ...string) {
	for _, m := range holeRE.FindAllStringSubmatch(template, -1) {
		if !slices.Contains(names, m[1]) {
			v.Add(field, document.Quote(m[0]), document.OneOf(braced(names)...))
		}
	}
}

func braced(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "{" + n + "}"
	}
	return out
}

func (v *validator) links() {
	all := v.r.Links
	v.unique("links", len(all), func(i int) string { return all[i].Name })
	for i, l := range all {
		field := fmt.Sprintf("links[%d]", i)
		if l.Name == "" {
			v.Add(field+".name", "nothing", "a name")
		}
		u, err := url.Parse(l.URL("example.com", "x"))
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			v.Add(field+".urlTemplate", document.Shown(l.URLTemplate), "a URL such as https://gitea.{domain}")
		}
		v.holes(field+".urlTemplate", l.URLTemplate, "domain", "deployment")
		if l.Service != "" {
			v.service(field+".service", l.Service)
		}
		v.component(field+".component", l.Component)
	}
}

func (v *validator) checks() {
	all := v.r.Checks
	v.unique("checks", len(all), func(i int) string { return all[i].Name })
	for i, c := range all {
		field := fmt.Sprintf("checks[%d]", i)
		if c.Name == "" {
			v.Add(field+".name", "nothing", "a name")
		}
		v.service(field+".service", c.Service)
		v.component(field+".component", c.Component)
		if !strings.HasPrefix(c.Path, "/") {
			v.Add(field+".path", document.Quote(c.Path), "a path that starts with /")
		}
		if c.Status < 100 || c.Status > 599 {
			v.Add(field+".status", fmt.Sprint(c.Status), "an HTTP status")
		}
	}
}

func (v *validator) component(field, name string) {
	if name != "" && !slices.ContainsFunc(v.r.Components, func(c Component) bool { return c.Name == name }) {
		v.Add(field, document.Quote(name), "the name of a component in this file")
	}
}

func (v *validator) service(field, value string) {
	if _, _, _, err := ParseService(value); err != nil {
		v.Add(field, document.Shown(value), "namespace/name:port")
	}
}

// ParseService splits "namespace/name:port".
func ParseService(s string) (namespace, name string, port int, err error) {
	if m := serviceRE.FindStringSubmatch(s); m != nil {
		if port, err = strconv.Atoi(m[3]); err == nil && port >= 1 && port <= 65535 {
			return m[1], m[2], port, nil
		}
	}
	return "", "", 0, fmt.Errorf("service %s: want namespace/name:port", document.Quote(s))
}
