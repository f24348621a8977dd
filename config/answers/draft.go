package answers

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
)

// SchemaURL is where editors find the schema of the written files.
const SchemaURL = "https://raw.githubusercontent.com/slipway-sh/slipway/main/docs/config.schema.json"

// Draft is a configuration that is being edited. Fields of an earlier file without a new
// answer are preserved, including comments.
type Draft struct {
	schema *Schema
	doc    *yaml.Node // the document node; its content is a mapping
}

// NewDraft returns a draft based on an earlier configuration of the current version, or
// an empty one. Without a schema nothing can be added to it.
func NewDraft(schema *Schema, base []byte) (*Draft, error) {
	d := &Draft{schema: schema, doc: &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}}
	var n yaml.Node
	if err := yaml.Unmarshal(base, &n); err != nil {
		return nil, fmt.Errorf("read the configuration to begin with: %w", err)
	}
	if len(n.Content) == 1 && n.Content[0].ShortTag() != "!!null" {
		if n.Content[0].Kind != yaml.MappingNode {
			return nil, errors.New("read the configuration to begin with: it is no mapping of fields (name: value)")
		}
		d.doc = &n
	}
	if !d.Has("apiVersion") {
		d.root().Content = slices.Insert(d.root().Content, 0, text("apiVersion"), text(config.APIVersion))
	}
	if comment := "# yaml-language-server: $schema="; !bytes.Contains(base, []byte(comment)) {
		first := d.root().Content[0]
		if d.root().Style&yaml.FlowStyle != 0 {
			first = d.doc
		}
		first.HeadComment = strings.TrimSuffix(comment+SchemaURL+"\n"+first.HeadComment, "\n")
	}
	return d, nil
}

// Readable converts the configuration that a run recorded, which is JSON with all
// defaults and with variables replaced, to what a user would write.
func Readable(schema *Schema, recorded []byte) ([]byte, error) {
	d, err := NewDraft(schema, recorded)
	if err != nil {
		return nil, err
	}
	block(d.root())
	if d.Get("global.admin.email") == "admin@"+d.Get("global.domain") { // the default
		d.Remove("global.admin.email")
	}
	for _, f := range schema.Fields("") {
		n := d.at(f.Path)
		switch {
		case n == nil:
		case f.Type != Other && (n.Kind == yaml.ScalarNode && n.Value == "" || n.Kind != yaml.ScalarNode && len(n.Content) == 0),
			f.Path == "hooks" && len(n.Content) == 0, f.Path == "platform.components" && len(n.Content) == 0, f.Path == "platform.settings" && len(n.Content) == 0:
			d.Remove(f.Path)
		case f.interpolate:
			n.Value = literal(n.Value)
		}
	}
	for i := len(d.root().Content) - 2; i >= 0; i -= 2 {
		if v := d.root().Content[i+1]; v.Kind == yaml.MappingNode && len(v.Content) == 0 {
			d.Remove(d.root().Content[i].Value)
		}
	}
	return d.Bytes()
}

// block changes a value from JSON style to block style: non-empty mappings and lists of
// mappings get one line per item.
func block(n *yaml.Node) {
	n.Style &^= yaml.DoubleQuotedStyle
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		n.Style = text(n.Value).Style
	case n.Kind == yaml.MappingNode && len(n.Content) > 0, n.Kind == yaml.SequenceNode && slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Kind == yaml.MappingNode }):
		n.Style &^= yaml.FlowStyle
	}
	for _, c := range n.Content {
		block(c)
	}
}

// literal escapes references to variables.
func literal(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "$$", "$$$$"), "${", "$${")
}

func (d *Draft) root() *yaml.Node { return d.doc.Content[0] }

// Clone returns a deep copy.
func (d *Draft) Clone() *Draft {
	return &Draft{schema: d.schema, doc: clone(d.doc)}
}

func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = clone(child)
	}
	return &c
}

// Only returns a deep copy with these sections only.
func (d *Draft) Only(sections ...string) *Draft {
	c := d.Clone()
	for i := len(c.root().Content) - 2; i >= 0; i -= 2 {
		if key := c.root().Content[i]; !slices.Contains(sections, key.Value) {
			document.Cut(c.root(), key)
		}
	}
	return c
}

// Bytes returns the file.
func (d *Draft) Bytes() ([]byte, error) { return document.Encode(d.doc) }

// at returns the value of a field; nil if it is not set.
func (d *Draft) at(path string) *yaml.Node {
	_, n := document.Find(d.root(), path)
	if n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	return n
}

// Has reports whether a field or section is set.
func (d *Draft) Has(path string) bool { return d.at(path) != nil }

// Get returns the value of a field in the form of an answer; empty if it is not set.
func (d *Draft) Get(path string) string {
	n := d.at(path)
	if n == nil {
		return ""
	}
	return formatAnswer(value(n))
}

// value converts a node to the types of encoding/json.
func value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.SequenceNode:
		out := []any{}
		for _, c := range n.Content {
			out = append(out, value(c))
		}
		return out
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = value(n.Content[i+1])
		}
		return out
	}
	return n.Value
}

// line reports whether the value of a field fits on one line, with the items of a list or
// mapping separated by commas.
func (d *Draft) line(path string) bool {
	n := d.at(path)
	if n == nil {
		return true
	}
	for _, c := range append(n.Content, n) {
		if c.Kind == yaml.ScalarNode && (strings.ContainsAny(c.Value, "\r\n") || c != n && strings.Contains(c.Value, ",")) || c != n && c.Kind != yaml.ScalarNode {
			return false
		}
	}
	return true
}

// Set sets a field to an answer; an empty one removes the field. A field that already has
// the value remains as it is written. The problem is that the answer does not fit the
// field's type.
func (d *Draft) Set(f Field, answer string) *config.Problem {
	if d.Has(f.Path) && d.line(f.Path) && d.Get(f.Path) == answer {
		if n, wrong := f.node(answer); wrong == nil && n.ShortTag() == d.at(f.Path).ShortTag() {
			return nil
		}
	}
	if answer == "" {
		d.Remove(f.Path)
		return nil
	}
	n, wrong := f.node(answer)
	if wrong != nil {
		return wrong
	}
	d.put(f.Path, n)
	return nil
}

// SetText sets a text field to s.
func (d *Draft) SetText(path, s string) { d.put(path, text(s)) }

// Merge sets all fields that another draft sets; lists are replaced as a whole.
func (d *Draft) Merge(other *Draft) { d.merge("", other.root()) }

func (d *Draft) merge(path string, n *yaml.Node) {
	if n.Kind == yaml.MappingNode && (len(n.Content) > 0 || path == "") {
		for i := 0; i+1 < len(n.Content); i += 2 {
			d.merge(strings.TrimPrefix(path+"."+n.Content[i].Value, "."), n.Content[i+1])
		}
		return
	}
	d.put(path, clone(n))
}

// Remove removes a field or section, and mappings that are empty afterwards.
func (d *Draft) Remove(path string) { remove(d.root(), strings.Split(path, ".")) }

func remove(n *yaml.Node, path []string) {
	key, value := document.Find(n, path[0])
	if key == nil {
		return
	}
	if len(path) > 1 {
		remove(value, path[1:])
		if value.Kind != yaml.MappingNode || len(value.Content) > 0 {
			return
		}
	}
	document.Cut(n, key)
}

// put sets a field. New fields are inserted in the order of the schema.
func (d *Draft) put(path string, v *yaml.Node) {
	n, at := d.root(), ""
	names := strings.Split(path, ".")
	for i, name := range names {
		_, next := document.Find(n, name)
		at = strings.TrimPrefix(at+"."+name, ".")
		last := i == len(names)-1
		switch {
		case last && next != nil:
			replaced := *v
			replaced.HeadComment, replaced.LineComment, replaced.FootComment = next.HeadComment, next.LineComment, next.FootComment
			*next = replaced
		case next == nil || !last && next.Kind != yaml.MappingNode:
			fresh := v
			if !last {
				fresh = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			}
			if next != nil {
				*next = *fresh
			} else {
				d.insert(n, strings.TrimSuffix(strings.TrimSuffix(at, name), "."), name, fresh)
				next = fresh
			}
		}
		n = next
	}
}

func (d *Draft) insert(n *yaml.Node, path, name string, v *yaml.Node) {
	at := d.schema.root
	if path != "" {
		at, _, _ = d.schema.find(path)
	}
	names := order(at)
	rank := slices.Index(names, name)
	i := len(n.Content)
	if rank >= 0 {
		for j := 0; j+1 < len(n.Content); j += 2 {
			if other := slices.Index(names, n.Content[j].Value); other > rank {
				i = j
				break
			}
		}
	}
	if len(n.Content) == 0 {
		n.Style = 0 // it was {}
	}
	n.Content = slices.Insert(n.Content, i, text(name), v)
}
