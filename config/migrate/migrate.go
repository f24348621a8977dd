// Package migrate brings a configuration that was written for an older version of
// the schema to the current one, step by step. A step is a pure function on the
// file's YAML: it moves and converts what is there, keeps comments and line
// numbers, and adds nothing.
package migrate

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The versions of the schema, oldest first.
const (
	V1Alpha1 = "slipway.sh/v1alpha1" // flat; files of it say version: 1
	V1Beta1  = "slipway.sh/v1beta1"  // the sections global and, in it, scale as a number
	V1       = "slipway.sh/v1"       // global.admin and advanced
	Current  = V1
)

// Versions are all versions of the schema, oldest first.
func Versions() []string { return []string{V1Alpha1, V1Beta1, V1} }

// Change is one thing that a migration did, for people.
type Change struct {
	From string // path of the field as it was
	To   string // as it is now; empty: the field is gone
	Old  string // its value as it was, where that was converted
	New  string
	Line int
}

// String is the change on one line.
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

// Version is what a file's root says that it was written for: one of Versions, or
// what it says if that is none of them; empty when it says nothing.
func Version(root *yaml.Node) string {
	if root == nil {
		return ""
	}
	if _, v := find(root, "apiVersion"); v != nil {
		return v.Value
	}
	if _, v := find(root, "version"); v != nil && v.ShortTag() == "!!int" && v.Value == "1" {
		return V1Alpha1
	}
	return ""
}

// steps are the migrations by the version that they start from.
var steps = map[string]func(*file){ //nolint:gochecknoglobals // a constant table
	V1Alpha1: toV1Beta1,
	V1Beta1:  toV1,
}

// Apply migrates the root of a file of version from, one of Versions, and tells
// what it changed.
func Apply(root *yaml.Node, from string) []Change {
	f := &file{root: root}
	for _, version := range Versions()[slices.Index(Versions(), from):] {
		if step, ok := steps[version]; ok {
			step(f)
		}
	}
	return f.changes
}

// move is a field that gets another path.
type move struct{ from, to string }

func movesToV1Beta1() []move {
	return []move{{"name", "global.name"}, {"domain", "global.domain"}, {"adminEmail", "global.adminEmail"}, {"scale", "global.scale"}}
}

func movesToV1() []move {
	return []move{{"global.adminEmail", "global.admin.email"}, {"timeouts", "advanced.timeouts"}, {"registry", "advanced.registry"}}
}

// Now is the path that a field of an older version has in the current one; empty if
// it has the same there, or is none.
func Now(field string) string {
	to := ""
	for _, m := range append(movesToV1Beta1(), movesToV1()...) {
		if m.from == field || m.from == to {
			to = m.to
		}
	}
	return to
}

// toV1Beta1: what the deployment is moves into the section global, and the scale
// becomes a number.
func toV1Beta1(f *file) {
	f.version(V1Beta1)
	for _, m := range movesToV1Beta1() {
		f.move(m.from, m.to)
	}
	f.convert("global.scale", map[string]string{"small": "50", "medium": "100", "large": "1000"}, "!!int")
}

// toV1: the administrator and what seldom changes get sections of their own.
func toV1(f *file) {
	f.version(V1)
	for _, m := range movesToV1() {
		f.move(m.from, m.to)
	}
}
