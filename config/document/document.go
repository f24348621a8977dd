// Package document strictly decodes small hand-written YAML documents into Go types. It
// reports all problems at once, each with its field and line, and never shows the value
// of an unknown field.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// maxDepth is how deep mappings and lists may nest.
const maxDepth = 32

// Problem is one thing that is wrong with a document.
type Problem struct {
	Field string // path of the field: "tls.key", "components[2].name"; empty for the document itself
	Line  int    // counted from 1; 0 if unknown
	Got   string // what is there; may be empty
	Want  string // what should be there

	// Meant is the field that an unknown field was probably meant to be.
	Meant string
	// Cause is a field whose own problem, if it has one, makes this one redundant.
	Cause string
}

// String returns the problem on one line.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	switch {
	case strings.ContainsFunc(p.Field, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }), len(p.Field) > 200:
		b.WriteString(Quote(key(p.Field)) + ": ")
	case p.Field != "":
		b.WriteString(key(p.Field) + ": ")
	}
	return b.String() + p.Reason()
}

// Reason returns what is there and what should be there.
func (p Problem) Reason() string {
	switch {
	case p.Want == "":
		return p.Got
	case p.Got == "":
		return "want " + p.Want
	}
	return "got " + p.Got + ", want " + p.Want
}

// Document is a parsed document whose root is a mapping or nothing at all.
type Document struct {
	root  *yaml.Node // nil when the document is empty
	whole *yaml.Node // the document node around root, with the comments before and after it
	lines map[string]int
	nodes map[string]*yaml.Node // values by field
	env   func(name string) (string, bool)

	unusable []string // fields that contain something that could not be read
	expanded []string // fields in which Decode replaced references
}

// Parse reads data as one YAML document. If it returns problems, the document holds
// what could be read, or is nil if nothing could.
func Parse(data []byte) (*Document, []Problem) {
	if p, ok := notText(data); !ok {
		return nil, []Problem{p}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := dec.Decode(&first); errors.Is(err, io.EOF) {
		return &Document{}, nil
	} else if err != nil {
		return nil, []Problem{Syntax(data, err)}
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, []Problem{{Line: second.Line, Got: "another document", Want: "one document in the file"}}
	case !errors.Is(err, io.EOF):
		return nil, []Problem{Syntax(data, err)}
	}
	d := &Document{lines: map[string]int{}, nodes: map[string]*yaml.Node{}}
	root := first.Content[0]
	switch {
	case isNull(root):
		return d, nil
	case root.Kind != yaml.MappingNode:
		return nil, []Problem{{Line: root.Line, Got: kindOf(root), Want: "a mapping of fields (name: value)"}}
	}
	d.root, d.whole = root, &first
	return d, d.check("", root, 1)
}

// Root returns the document's mapping; nil if the document is empty.
func (d *Document) Root() *yaml.Node { return d.root }

// IsEmpty reports whether the document has no field.
func (d *Document) IsEmpty() bool { return d.root == nil || len(d.root.Content) == 0 }

// Edit lets edit change the document's mapping, and returns the problems that the
// document has afterwards, which replace those of Parse.
func (d *Document) Edit(edit func(root *yaml.Node)) []Problem {
	if d.root == nil {
		return nil
	}
	edit(d.root)
	clear(d.lines)
	clear(d.nodes)
	d.unusable = nil
	return d.check("", d.root, 1)
}

// Encode returns the document as YAML text.
func (d *Document) Encode() ([]byte, error) {
	if d.whole == nil {
		return nil, nil
	}
	return Encode(d.whole)
}

// Interpolate makes Decode replace ${NAME} and ${NAME:-default} in the text of
// fields with the tag interpolate:"true"; $$ is a dollar sign.
func (d *Document) Interpolate(env func(name string) (string, bool)) { d.env = env }

// Expanded returns the fields in which Decode replaced references to variables.
func (d *Document) Expanded() []string { return d.expanded }

// Has reports whether the field is in the document.
func (d *Document) Has(field string) bool {
	_, ok := d.lines[field]
	return ok
}

// Text returns the field's text as written in the document; empty if it is not text.
func (d *Document) Text(field string) string {
	if n := d.nodes[field]; n != nil && IsText(n) {
		return n.Value
	}
	return ""
}

// Kind describes the field's value: "a list", "text", "nothing".
func (d *Document) Kind(field string) string {
	n := d.nodes[field]
	if n == nil || IsText(n) && n.Value == "" {
		return "nothing"
	}
	return kindOf(n)
}

// Empty reports whether the field is absent or null.
func (d *Document) Empty(field string) bool {
	n := d.nodes[field]
	return n == nil || isNull(n)
}

// Usable reports whether all of the field could be read.
func (d *Document) Usable(field string) bool {
	return !slices.ContainsFunc(d.unusable, func(path string) bool { return within(path, field) })
}

// within reports whether path is the field or a part of it.
func within(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Line returns the line of the field or, if it is not in the document, of the nearest
// field around it; 0 if there is none.
func (d *Document) Line(field string) int {
	for {
		if l, ok := d.lines[field]; ok {
			return l
		}
		i := strings.LastIndexAny(field, ".[")
		if i < 0 {
			return 0
		}
		field = field[:i]
	}
}

// check finds what no document may contain, and records the line of each field.
func (d *Document) check(path string, n *yaml.Node, depth int) []Problem {
	d.nodes[path] = n
	if depth > maxDepth {
		d.unusable = append(d.unusable, path)
		return []Problem{{Field: path, Line: n.Line, Got: "deeper nesting", Want: fmt.Sprintf("at most %d levels", maxDepth)}}
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		d.unusable = append(d.unusable, path)
		return []Problem{{Field: path, Line: n.Line, Got: "an anchor or alias", Want: "the value itself, in quotes if it starts with & or *"}}
	}
	var problems []Problem
	switch n.Kind {
	case yaml.MappingNode:
		seen := map[string]int{}
		for key, value := range pairs(n) {
			if key.Kind != yaml.ScalarNode || !IsText(key) || key.Anchor != "" {
				want := "text as key"
				switch {
				case key.ShortTag() == "!!merge":
					want = "the fields themselves"
				case key.Kind == yaml.ScalarNode && key.Anchor == "":
					want += " (put it in quotes)"
				}
				problems = append(problems, Problem{Field: path, Line: key.Line, Got: "a key that is " + kindOf(key), Want: want})
				continue
			}
			field := join(path, key.Value)
			if line, ok := seen[key.Value]; ok {
				problems = append(problems, Problem{Field: field, Line: key.Line, Got: again(line), Want: "it once"})
				continue
			}
			seen[key.Value] = key.Line
			d.lines[field] = key.Line
			problems = append(problems, d.check(field, value, depth+1)...)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			field := fmt.Sprintf("%s[%d]", path, i)
			d.lines[field] = item.Line
			problems = append(problems, d.check(field, item, depth+1)...)
		}
	case yaml.ScalarNode:
		if strings.Contains(n.Value, "\x00") { // which no argument and no variable of a program can hold
			problems = append(problems, Problem{Field: path, Line: n.Line, Got: "a NUL character", Want: "text without NUL characters"})
		}
		if kindOf(n) == "" {
			problems = append(problems, Problem{Field: path, Line: n.Line, Got: "a tag (!…)", Want: "a plain value, in quotes if it starts with !"})
		}
	}
	return problems
}

// pairs yields the keys and values of a mapping.
func pairs(n *yaml.Node) func(func(*yaml.Node, *yaml.Node) bool) {
	return func(yield func(*yaml.Node, *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// Find returns the key and value of the field at path in a mapping; nil if there is none.
func Find(n *yaml.Node, path string) (key, value *yaml.Node) {
	name, rest, deeper := strings.Cut(path, ".")
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for key, value := range pairs(n) {
		if key.Value != name || key.Kind != yaml.ScalarNode {
			continue
		}
		if deeper {
			return Find(value, rest)
		}
		return key, value
	}
	return nil, nil
}

// Cut removes the field with that key from a mapping.
func Cut(n, key *yaml.Node) {
	if i := slices.Index(n.Content, key); i >= 0 {
		n.Content = slices.Delete(n.Content, i, i+2)
	}
}

// Encode returns YAML text, indented by two spaces.
func Encode(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(n), enc.Close()); err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}
	return b.Bytes(), nil
}

// kindOf describes n's kind; empty for a scalar with a custom tag.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch tag(n) {
	case "!!str", "!!timestamp":
		return "text"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "nothing"
	case "!!merge":
		return "a merge key"
	}
	return ""
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
