// Package migrate converts configurations that were written for an older version of the
// schema to the current one, step by step. A step is a pure function on the file's YAML:
// it moves and converts existing fields, preserves comments and line numbers, and adds
// nothing.
package migrate

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config/document"
)

// The versions of the schema, oldest first.
const (
	V1Alpha1 = "slipway.sh/v1alpha1" // flat; its files have version: 1
	V1Beta1  = "slipway.sh/v1beta1"  // added the section global; scale is a number
	V1       = "slipway.sh/v1"       // added global.admin and advanced
	Current  = V1
)

// Versions returns all versions of the schema, oldest first.
func Versions() []string { return []string{V1Alpha1, V1Beta1, V1} }

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

// steps are the migrations by the version that they start from.
var steps = map[string]func(*file){ //nolint:gochecknoglobals // a constant table
	V1Alpha1: toV1Beta1,
	V1Beta1:  toV1,
}

// Apply migrates the root of a file of version from, one of Versions, and returns the
// changes.
func Apply(root *yaml.Node, from string) []Change {
	f := &file{root: root}
	for _, version := range Versions()[slices.Index(Versions(), from):] {
		if step, ok := steps[version]; ok {
			step(f)
		}
	}
	return f.changes
}

// move is a field whose path changes.
type move struct{ from, to string }

func movesToV1Beta1() []move {
	return []move{{"name", "global.name"}, {"domain", "global.domain"}, {"adminEmail", "global.adminEmail"}, {"scale", "global.scale"}}
}

func movesToV1() []move {
	return []move{{"global.adminEmail", "global.admin.email"}, {"timeouts", "advanced.timeouts"}, {"registry", "advanced.registry"}}
}

// Now returns the current path of a field that an older version had at another path;
// empty if it has not moved or never existed.
func Now(field string) string {
	to := ""
	for _, m := range append(movesToV1Beta1(), movesToV1()...) {
		if m.from == field || m.from == to {
			to = m.to
		}
	}
	return to
}

// toV1Beta1 moves the fields that describe the deployment into the section global, and
// converts the scale to a number.
func toV1Beta1(f *file) {
	f.version(V1Beta1)
	for _, m := range movesToV1Beta1() {
		f.move(m.from, m.to)
	}
	f.convert("global.scale", map[string]string{"small": "50", "medium": "100", "large": "1000"}, "!!int")
}

// toV1 moves the administrator and rarely changed settings to sections of their own.
func toV1(f *file) {
	f.version(V1)
	for _, m := range movesToV1() {
		f.move(m.from, m.to)
	}
}
