package platform

import (
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"reflect"
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
	textRE       = regexp.MustCompile(`\S`)
	urlPathRE    = regexp.MustCompile(`^/`)
	nodeLabelRE  = regexp.MustCompile(strings.TrimSuffix(labelRE.String(), "$") + "=" + strings.TrimPrefix(valueRE.String(), "^"))
	groupKindRE  = regexp.MustCompile(`^([a-z0-9.-]+/)?[A-Z][A-Za-z0-9]*$`)
)

// What nameRE and versionRE match.
const (
	nameWant    = "lower-case letters, digits and hyphens, 53 at most, starting with a letter"
	versionWant = `a semantic version such as "1.0.0"`
)

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
	v.fields("", reflect.ValueOf(r).Elem())
	// nil for a version that was reported, and for a pre-release with a leading zero (1.0.0-01),
	// which semantic versioning does not order.
	release, _ := semver.StrictNewVersion(r.Version)
	for i, from := range r.UpgradableFrom {
		earlier, err := semver.StrictNewVersion(from)
		if err == nil && release != nil && !earlier.LessThan(release) {
			v.Add(fmt.Sprintf("upgradableFrom[%d]", i), document.Quote(from), "a version before "+r.Version)
		}
	}
	v.requirements()
	v.components()
	v.gitops()
	v.secrets()
	v.unique("configMaps", "name", len(r.ConfigMaps), func(i int) string { return r.ConfigMaps[i].Namespace + "/" + r.ConfigMaps[i].Name })
	for i, m := range r.ConfigMaps {
		for _, key := range slices.Sorted(maps.Keys(m.Data)) {
			v.filled(fmt.Sprintf("configMaps[%d].data.%s", i, key), m.Data[key])
		}
	}
	v.links()
	v.remove()
	v.phases()
	v.data()
	v.migrations()
	v.tests()
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
	known := append(Everywhere(), more...)
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
	for i, l := range v.r.Links {
		field := fmt.Sprintf("links[%d].urlTemplate", i)
		u, err := url.Parse(l.URL("example.com", "x"))
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			v.Add(field, document.Shown(l.URLTemplate), "a URL such as https://gitea.{domain}")
		}
		v.holes(field, l.URLTemplate, "domain", "deployment")
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

func (v *validator) tests() {
	for i, t := range v.r.Tests {
		field := fmt.Sprintf("tests[%d]", i)
		if t.Path == "" && len(t.Ready) == 0 {
			v.Add(field, "a test that does nothing", "path, ready, or both")
		} else if t.Path != "" || t.Namespace != "" {
			if t.Namespace == "" {
				v.namespace(field+".namespace", "")
			}
			v.content(field+".path", t.Files())
		}
		v.gates(field, t.Ready)
	}
	for i, w := range v.r.Workloads {
		field := fmt.Sprintf("workloads[%d]", i)
		v.content(field+".path", w.Files())
		v.content(field+".check", w.Checks())
	}
}
