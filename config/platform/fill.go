package platform

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config"
)

// The names that texts of a release may have in braces. {images.NAME} is the reference of
// an image, and {settings.PATH} a value of platform.settings.
const (
	FillDomain       = "domain"         // parent domain of the deployment
	FillDeployment   = "deployment"     // name of the deployment
	FillAdminEmail   = "adminEmail"     // mail address of the administrator
	FillScale        = "scale"          // name of its scale profile: "50"
	FillStorageClass = "storageClass"   // storage class of volumes
	FillProxyHTTP    = "proxy.http"     // configured proxy for http URLs, or empty
	FillProxyHTTPS   = "proxy.https"    // configured proxy for https URLs, or empty
	FillProxyNone    = "proxy.none"     // hosts without proxy: the cluster, private networks, and the configuration's
	FillKnownHosts   = "git.knownHosts" // known_hosts lines for the user's Git server, or empty
	FillGitURL       = "git.url"        // URL of the tree's repository; only in gitops.cluster and in values of charts after Argo CD
	FillGitRevision  = "git.revision"   // branch, tag or commit; like {git.url}
	FillGitPath      = "git.path"       // folder of the tree in the repository; like {git.url}
	fillImages       = "images."
	fillSettings     = "settings."
)

// holeRE matches a name in braces, with the backslashes before it.
var holeRE = regexp.MustCompile(`(\\*)\{([A-Za-z][A-Za-z0-9._-]*)\}`)

// replace calls with for every {name} in s, and puts what it returns in its place. \{name} is
// the text {name} itself, and \\ before a name a backslash. {{name}} and ${name}, which are
// others' templates, are left alone.
func replace(s string, with func(name string) string) string {
	var out strings.Builder
	rest := 0
	for _, m := range holeRE.FindAllStringSubmatchIndex(s, -1) {
		slashes, name := m[3]-m[2], s[m[4]:m[5]]
		if slashes == 0 && m[0] > 0 && (s[m[0]-1] == '{' || s[m[0]-1] == '$') {
			continue
		}
		out.WriteString(s[rest:m[0]] + s[m[0]:m[0]+slashes/2])
		if slashes%2 == 1 {
			out.WriteString("{" + name + "}")
		} else {
			out.WriteString(with(name))
		}
		rest = m[1]
	}
	return out.String() + s[rest:]
}

// Fill replaces every {name} in s that is in values.
func Fill(s string, values map[string]string) string {
	return replace(s, func(name string) string {
		if v, ok := values[name]; ok {
			return v
		}
		return "{" + name + "}"
	})
}

// FillValues replaces every {name} in the texts of values, a JSON object, by known; a
// text that is one name becomes the known value itself; within a text a value that is none
// is as JSON has it. The result is JSON with sorted keys. A name that is not known is an
// error.
func FillValues(values json.RawMessage, known map[string]any) (map[string]any, error) {
	if len(values) == 0 {
		return map[string]any{}, nil
	}
	var in map[string]any
	if err := json.Unmarshal(values, &in); err != nil {
		return nil, fmt.Errorf("the values are no mapping: %w", err)
	}
	filled, err := fillAny(in, known)
	out, _ := filled.(map[string]any)
	return out, err
}

func fillAny(v any, known map[string]any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			filled, err := fillAny(e, known)
			if err != nil {
				return nil, err
			}
			out[k] = filled
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = fillAny(e, known); err != nil {
				return nil, err
			}
		}
		return out, nil
	case string:
		return fillText(v, known)
	}
	return v, nil
}

func fillText(s string, known map[string]any) (any, error) {
	names := holes(s)
	for _, name := range names {
		if _, ok := known[name]; !ok {
			return nil, fmt.Errorf("nothing is known for {%s}", name)
		}
	}
	if len(names) == 1 && s == "{"+names[0]+"}" {
		return known[names[0]], nil
	}
	return replace(s, func(name string) string { return textOf(known[name]) }), nil
}

// textOf is a value within a text: as it stands, as JSON if it is none, and nothing for null.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // no value that was read from JSON or YAML
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// FillTexts replaces the names in texts by known. A name that is not known is an error.
func FillTexts(texts map[string]string, known map[string]any) (map[string]string, error) {
	out := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(texts)) {
		filled, err := fillText(texts[k], known)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		out[k] = textOf(filled)
	}
	return out, nil
}

// holes returns the names in braces in texts, each once, sorted.
func holes(texts ...string) []string {
	seen := map[string]bool{}
	for _, s := range texts {
		replace(s, func(name string) string {
			seen[name] = true
			return ""
		})
	}
	return slices.Sorted(maps.Keys(seen))
}

// Holes returns the names that the component's values contain, sorted.
func (c Component) Holes() []string {
	texts := slices.Clone(c.ValuesFiles)
	config.EachText(c.Values, "", func(_, _, text string) { texts = append(texts, text) })
	return holes(texts...)
}

// Holes returns the names that the ConfigMap's texts contain, sorted.
func (m ConfigMap) Holes() []string { return holes(slices.Collect(maps.Values(m.Data))...) }

// TreeNames are the names that stand for where the tree is.
func TreeNames() []string { return []string{FillGitURL, FillGitRevision, FillGitPath} }

// NamesTree reports whether the component's values say where the tree is: it comes after
// whatever finds that out.
func (c Component) NamesTree() bool {
	return slices.ContainsFunc(c.Holes(), func(name string) bool { return slices.Contains(TreeNames(), name) })
}

// ImageHole returns the short name of an image from a name of Fill.
func ImageHole(name string) (image string, ok bool) { return strings.CutPrefix(name, fillImages) }

// SettingHole returns the path of a setting from a name of Fill.
func SettingHole(name string) (path string, ok bool) { return strings.CutPrefix(name, fillSettings) }

// Setting finds a value in platform.settings by its path.
func Setting(settings json.RawMessage, path string) (any, bool) {
	var at any
	if json.Unmarshal(settings, &at) != nil { // it has been checked; there may be none
		return nil, false
	}
	for _, key := range strings.Split(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = m[key]; !ok {
			return nil, false
		}
	}
	return at, true
}

// HolesIn returns the names in braces in the texts of a JSON value, sorted.
func HolesIn(value json.RawMessage) []string {
	var texts []string
	config.EachText(value, "", func(_, _, text string) { texts = append(texts, text) })
	return holes(texts...)
}

// Everywhere are the names that values, hosts, ConfigMaps and pods may contain, besides
// those of images and settings.
func Everywhere() []string {
	return []string{FillDomain, FillDeployment, FillAdminEmail, FillScale, FillStorageClass, FillProxyHTTP, FillProxyHTTPS, FillProxyNone, FillKnownHosts}
}
