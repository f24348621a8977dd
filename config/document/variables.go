package document

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reference matches a reference to an environment variable, $$, and the beginning of a
// malformed reference.
var reference = regexp.MustCompile(`\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}|\$\{`)

// Refers reports whether text contains a reference to an environment variable.
func Refers(text string) bool { return strings.Contains(text, "${") }

// expand replaces the references to environment variables in the string v. A variable
// that is unset or empty and has no default is a problem. Values are never shown.
func (d *decoder) expand(field string, n *yaml.Node, v reflect.Value) {
	var unset []string
	malformed := false
	v.SetString(reference.ReplaceAllStringFunc(v.String(), func(found string) string {
		if found == "$$" {
			return "$"
		}
		m := reference.FindStringSubmatch(found)
		name, fallback := m[1], m[2]
		if name == "" || Refers(fallback) {
			malformed = true
			return found
		}
		d.expanded = append(d.expanded, field)
		if value, ok := d.env(name); ok && value != "" {
			return value
		}
		if fallback == "" && !slices.Contains(unset, name) {
			unset = append(unset, name)
		}
		return strings.TrimPrefix(fallback, ":-")
	}))
	switch {
	case malformed:
		d.problem(field, n, "${ without a name and } after it", "${NAME} or ${NAME:-default} (without a reference in it); or $${ for the characters themselves")
	case len(unset) > 0:
		d.problem(field, n, "${"+strings.Join(unset, "}, ${")+"}",
			fmt.Sprintf("the environment variables set, or defaults: ${%s:-value}", unset[0]))
	}
}
