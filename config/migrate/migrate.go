// Package migrate converts configurations that were written for the older version of the
// schema to the current one. A migration is a pure function on the file's YAML: it moves and
// converts existing fields, preserves comments and line numbers, and adds nothing.
package migrate

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config/document"
)

// The versions of the schema, oldest first.
const (
	V1Alpha1 = "slipway.sh/v1alpha1" // flat; its files have version: 1
	Current  = "slipway.sh/v1"
)

// Versions returns all versions of the schema, oldest first.
func Versions() []string { return []string{V1Alpha1, Current} }

// Change is one change of a migration.
type Change struct {
	From string // path of the field before
	To   string // path after; empty: the field was removed
	Old  string // its value before, if that was converted
	New  string
	Line int
}

// String returns the change on one line.
func (c Change) String() string {
	var b strings.Builder
	if c.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", c.Line)
	}
	switch {
	case c.To == "":
		fmt.Fprintf(&b, "%s is gone", c.From)
	case c.From == c.To:
		b.WriteString(c.To)
	default:
		fmt.Fprintf(&b, "%s is now %s", c.From, c.To)
	}
	if c.Old != c.New {
		fmt.Fprintf(&b, ", %s is now %s", c.Old, c.New)
	}
	return b.String()
}

// Version returns the version that a file declares, which need not be one of Versions;
// empty if it declares none.
func Version(root *yaml.Node) string {
	if _, v := document.Find(root, "apiVersion"); v != nil {
		return v.Value
	}
	if _, v := document.Find(root, "version"); v != nil && v.ShortTag() == "!!int" && v.Value == "1" {
		return V1Alpha1
	}
	return ""
}

// Apply migrates the root of a file of version from, one of Versions, and returns the
// changes.
func Apply(root *yaml.Node, from string) []Change {
	f := &file{root: root}
	if from == V1Alpha1 {
		f.version(Current)
		for _, m := range moves() {
			f.move(m.from, m.to)
		}
		f.convert("global.scale", map[string]string{"small": "50", "medium": "100", "large": "1000"}, "!!int")
	}
	return f.changes
}

// move is a field whose path changes.
type move struct{ from, to string }

// moves are those from V1Alpha1 to Current.
func moves() []move {
	return []move{
		{"name", "global.name"}, {"domain", "global.domain"}, {"adminEmail", "global.admin.email"}, {"scale", "global.scale"},
		{"timeouts", "advanced.timeouts"}, {"registry", "advanced.registry"},
	}
}

// Now returns the current path of a field that the older version had at another path; empty if
// it has not moved or never existed.
func Now(field string) string {
	for _, m := range moves() {
		if m.from == field {
			return m.to
		}
	}
	return ""
}
