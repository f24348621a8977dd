package platform

import (
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
	// apiVersionRE matches the name of any version of platform.yaml, known or not.
	apiVersionRE = regexp.MustCompile(`^slipway/v[0-9]+$`)

	nameRE    = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,51}[a-z0-9])?$`)
	imageRE   = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)
	labelRE   = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	valueRE   = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)
	keyRE     = regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}$`)
	versionRE = regexp.MustCompile(`^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
	hostRE    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	// reservedRE matches Kubernetes' and Slipway's own namespaces.
	reservedRE = regexp.MustCompile(`^(default|kube-.*|slipway-system)$`)
	serviceRE  = regexp.MustCompile(`^([a-z0-9-]+)/([a-z0-9-]+):([0-9]{1,5})$`)

	giveRE       = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.-]{0,62}$`)
	repositoryRE = regexp.MustCompile(`^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$`)
	groupKindRE  = regexp.MustCompile(`^([a-z0-9.-]+/)?[A-Z][A-Za-z0-9]*$`)
)

// The range of an HTTP status.
const (
	minStatus = 100
	maxStatus = 599
)

// nameWant describes what nameRE matches.
const nameWant = "lower-case letters, digits and hyphens, 53 at most, starting with a letter"

// NamespaceWant says what a name should be in place of one that cannot be that of a
// platform's namespace; empty if it can.
func NamespaceWant(name string) string {
	switch {
	case !nameRE.MatchString(name):
		return nameWant
	case reservedRE.MatchString(name):
		return "a namespace that is neither Kubernetes' nor Slipway's own"
	}
	return ""
}

// clusterNamespaces returns the namespaces that every cluster has.
func clusterNamespaces() []string { return []string{"default", "kube-system"} }

// validator collects the problems of a release.
type validator struct {
	document.List
	r    *Release
	fsys fs.FS
}

// unique reports names in the key of a list's items that are there twice.
func (v *validator) unique(field, key string, n int, name func(int) string) {
	first := map[string]int{}
	for i := range n {
		if j, ok := first[name(i)]; ok {
			v.Add(fmt.Sprintf("%s[%d].%s", field, i, key), document.Quote(name(i))+" again", fmt.Sprintf("another %s than that of %s[%d]", key, field, j))
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
	v.Match("name", r.Name, nameRE, nameWant)
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
	v.requirements()
	v.namespaces()
	v.components()
	v.gitops()
	v.secrets()
	v.configMaps()
	v.certificates()
	v.links()
	v.checks()
	v.remove()
	v.phases()
	v.data()
	v.migrations()
	v.configuration()
	v.tests()
	v.workloads()
}

func (v *validator) namespaces() {
	all := v.r.Namespaces
	v.unique("namespaces", "name", len(all), func(i int) string { return all[i].Name })
	for i, n := range all {
		field := fmt.Sprintf("namespaces[%d]", i)
		if want := NamespaceWant(n.Name); want != "" {
			v.Add(field+".name", document.Shown(n.Name), want)
		}
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
	names := clusterNamespaces()
	for _, n := range v.r.Namespaces {
		names = append(names, n.Name)
	}
	if !slices.Contains(names, name) {
		v.Add(field, document.Shown(name), "one of the namespaces: "+strings.Join(names, ", "))
	}
}

// holes checks that the {names} in a text are among names.
func (v *validator) holes(field, text string, names ...string) {
	for _, name := range holes(text) {
		if !slices.Contains(names, name) {
			want := document.OneOf(braced(names)...)
			if len(names) > 1 { // a host, or the path of a file, has no other braces
				want += escape(name)
			}
			v.Add(field, document.Quote("{"+name+"}"), want)
		}
	}
}

// filled checks that the {names} in a text are those of Fill, or among more.
func (v *validator) filled(field, text string, more ...string) {
	known := append(filled(), more...)
	for _, name := range holes(text) {
		image, isImage := ImageHole(name)
		setting, isSetting := SettingHole(name)
		switch {
		case isImage && imageRE.MatchString(image), isSetting && setting != "", slices.Contains(known, name):
		default:
			v.Add(field, document.Quote("{"+name+"}"), document.OneOf(append(braced(known), "{images.NAME}", "{settings.NAME}")...)+escape(name))
		}
	}
}

// escape says how a name in braces is written that is text. In double quotes YAML takes one
// backslash itself.
func escape(name string) string {
	return `; or \{` + name + `} (in double quotes \\{` + name + `}) for the text {` + name + `}`
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
	v.unique("links", "name", len(all), func(i int) string { return all[i].Name })
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
		v.componentName(field+".component", l.Component)
	}
}

func (v *validator) checks() {
	all := v.r.Checks
	v.unique("checks", "name", len(all), func(i int) string { return all[i].Name })
	for i, c := range all {
		field := fmt.Sprintf("checks[%d]", i)
		if c.Name == "" {
			v.Add(field+".name", "nothing", "a name")
		}
		v.service(field+".service", c.Service)
		v.componentName(field+".component", c.Component)
		if !strings.HasPrefix(c.Path, "/") {
			v.Add(field+".path", document.Quote(c.Path), "a path that starts with /")
		}
		if c.Status < minStatus || c.Status > maxStatus {
			v.Add(field+".status", fmt.Sprint(c.Status), "an HTTP status")
		}
	}
}

func (v *validator) componentName(field, name string) {
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
