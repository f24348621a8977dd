package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config/document"
)

// file is a configuration that is being migrated.
type file struct {
	root    *yaml.Node
	changes []Change
}

// parent returns the mapping that holds the field at path, and the field's name there.
func (f *file) parent(path string) (n *yaml.Node, name string) {
	at := strings.LastIndexByte(path, '.')
	if at < 0 {
		return f.root, path
	}
	_, n = document.Find(f.root, path[:at])
	return n, path[at+1:]
}

// version sets the version of the file.
func (f *file) version(to string) {
	key, value := document.Find(f.root, "apiVersion")
	if key == nil {
		key, value = document.Find(f.root, "version")
	}
	f.changes = append(f.changes, Change{From: key.Value, To: "apiVersion", Old: value.Value, New: to, Line: key.Line})
	key.Value = "apiVersion"
	value.SetString(to)
}

// move changes the path of a field, unless the field is absent or there is one at the new
// path already; it is then reported as unknown.
func (f *file) move(from, to string) {
	in, name := f.parent(from)
	key, value := document.Find(in, name)
	if key == nil {
		return
	}
	if _, taken := document.Find(f.root, to); taken != nil {
		return
	}
	into := f.mapping(to[:strings.LastIndexByte(to, '.')], in, key)
	if into == nil {
		return
	}
	if value.ShortTag() == "!!null" && value.Value == "" {
		value.Value = "null" // in another style it would be text
	}
	if in == into {
		key.Value = to[strings.LastIndexByte(to, '.')+1:]
	} else {
		document.Cut(in, key)
		key.Value = to[strings.LastIndexByte(to, '.')+1:]
		into.Content = append(into.Content, key, value)
	}
	f.changes = append(f.changes, Change{From: from, To: to, Line: key.Line})
}

// mapping returns the one at path, which is made where key stands, in the mapping in, if
// it is not there; nil when something else is there.
func (f *file) mapping(path string, in, key *yaml.Node) *yaml.Node {
	at := f.root
	for name := range strings.SplitSeq(path, ".") {
		k, v := document.Find(at, name)
		switch {
		case k == nil:
			k = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: key.Line, Column: key.Column}
			v = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: key.Line, Column: key.Column}
			insert(at, in, key, k, v)
		case v.Kind == yaml.ScalarNode && v.ShortTag() == "!!null":
			*v = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: v.Line, Column: v.Column}
		case v.Kind != yaml.MappingNode:
			return nil
		}
		at = v
	}
	return at
}

// insert adds a field to a mapping, before key if that is in the same mapping.
func insert(n, in, before, key, value *yaml.Node) {
	at := len(n.Content)
	if n == in {
		at = slices.Index(n.Content, before)
	}
	n.Content = slices.Insert(n.Content, at, key, value)
}

// convert replaces a value according to a table, with the given tag.
func (f *file) convert(path string, values map[string]string, tag string) {
	_, v := document.Find(f.root, path)
	if v == nil || v.Kind != yaml.ScalarNode {
		return
	}
	to, ok := values[v.Value]
	if !ok {
		return // what is wrong there is reported later
	}
	f.changes = append(f.changes, Change{From: path, To: path, Old: v.Value, New: to, Line: v.Line})
	v.Value, v.Tag, v.Style = to, tag, 0
}
