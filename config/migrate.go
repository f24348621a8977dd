package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
)

// The versions of the schema. v1Alpha1 is flat; its files have version: 1.
const (
	v1Alpha1 = "slipway.sh/v1alpha1"
	// APIVersion is the current version; older files are migrated.
	APIVersion = "slipway.sh/v1"
)

// versions returns all versions of the schema, oldest first.
func versions() []string { return []string{v1Alpha1, APIVersion} }

// versionNameRE matches the name of any version of the schema, known or not.
var versionNameRE = regexp.MustCompile(`^slipway\.sh/v[0-9]+((alpha|beta)[0-9]+)?$`)

// Change is one change of a migration.
type Change struct {
	From string // path of the field before
	To   string // path after
	Old  string // its value before, if that was converted
	New  string
	Line int
}

// String returns the change on one line.
func (c Change) String() string {
	out := fmt.Sprintf("line %d: %s", c.Line, c.From)
	if c.From != c.To {
		out += " is now " + c.To
	}
	if c.Old != c.New {
		out += fmt.Sprintf(", %s is now %s", c.Old, c.New)
	}
	return out
}

// Migrate migrates a file to the current version, preserving comments, and returns it
// together with the changes: none if it is current. It returns a fault if the file is not
// YAML, or has no version that this program knows.
func Migrate(data []byte, file string) ([]byte, []Change, error) {
	doc, problems := document.Parse(data)
	if doc == nil {
		return nil, nil, invalid(file, problems)
	}
	if !doc.IsEmpty() {
		if _, wrong := versionOf(doc); wrong != nil {
			return nil, nil, invalid(file, doc.Merge(*wrong))
		}
	}
	changes, _, err := migrated(doc, problems, file)
	if err != nil || len(changes) == 0 {
		return data, nil, err
	}
	out, err := doc.Encode()
	return out, changes, err
}

// migrated migrates a document to the current version. problems are those of the document
// before; the returned ones are those after the migration.
func migrated(doc *document.Document, problems []Problem, file string) ([]Change, []Problem, error) {
	if doc.IsEmpty() {
		return nil, problems, nil
	}
	version, wrong := versionOf(doc)
	switch {
	case wrong != nil:
		return nil, append(problems, *wrong), nil
	case version == APIVersion:
		return nil, problems, nil
	case !slices.Contains(versions(), version):
		return nil, nil, &fault.Fault{
			Code: CodeNewer, Class: fault.Usage, Op: "read " + file,
			Err: fmt.Errorf("the file has apiVersion %s, this program knows %s", document.Quote(version), document.OneOf(versions()...)),
			Fix: "use the Slipway that wrote the file, or a newer one",
		}
	}
	var m migration
	problems = doc.Edit(func(root *yaml.Node) {
		m.root = root
		m.apply()
	})
	return m.changes, problems, nil
}

// versionOf returns the version of the schema that a document was written for, known or
// not, or the problem with it.
func versionOf(doc *document.Document) (string, *Problem) {
	text := doc.Text("apiVersion")
	_, number := document.Find(doc.Root(), "version")
	switch {
	case !doc.Has("apiVersion") && number != nil && number.ShortTag() == "!!int" && number.Value == "1":
		return v1Alpha1, nil
	case !doc.Has("apiVersion"):
		return "", &Problem{Field: "apiVersion", Line: 1, Got: "nothing", Want: APIVersion}
	case text == "":
		return "", &Problem{Field: "apiVersion", Got: doc.Kind("apiVersion"), Want: APIVersion}
	case !versionNameRE.MatchString(text):
		return "", &Problem{Field: "apiVersion", Got: document.Quote(text), Want: APIVersion}
	}
	return text, nil
}

// migration moves and converts the fields of a file in place: comments and line numbers stay,
// and nothing is added.
type migration struct {
	root    *yaml.Node
	changes []Change
}

// apply migrates a file of version v1Alpha1.
func (m *migration) apply() {
	key, value := document.Find(m.root, "apiVersion")
	if key == nil {
		key, value = document.Find(m.root, "version")
	}
	m.changes = append(m.changes, Change{From: key.Value, To: "apiVersion", Old: value.Value, New: APIVersion, Line: key.Line})
	key.Value = "apiVersion"
	value.SetString(APIVersion)
	for _, path := range moves() {
		m.move(path[0], path[1])
	}
	const scale = "global.scale"
	_, v := document.Find(m.root, scale)
	if v == nil || v.Kind != yaml.ScalarNode {
		return
	}
	if to := map[string]string{"small": "50", "medium": "100", "large": "1000"}[v.Value]; to != "" { // Load reports what is wrong there
		m.changes = append(m.changes, Change{From: scale, To: scale, Old: v.Value, New: to, Line: v.Line})
		v.Value, v.Tag, v.Style = to, "!!int", 0
	}
}

// moves are the fields of v1Alpha1 that have another path now, and that path.
func moves() [][2]string {
	return [][2]string{
		{"name", "global.name"}, {"domain", "global.domain"}, {"adminEmail", "global.admin.email"}, {"scale", "global.scale"},
		{"timeouts", "advanced.timeouts"}, {"registry", "advanced.registry"},
	}
}

// moved returns the current path of a field of v1Alpha1; empty if it has not moved or never existed.
func moved(field string) string {
	i := slices.IndexFunc(moves(), func(m [2]string) bool { return m[0] == field })
	if i < 0 {
		return ""
	}
	return moves()[i][1]
}

// move changes the path of a field at the top of the file, unless there is one at the new path
// already; the field is then reported as unknown.
func (m *migration) move(from, to string) {
	key, value := document.Find(m.root, from)
	if _, taken := document.Find(m.root, to); key == nil || taken != nil {
		return
	}
	at := strings.LastIndexByte(to, '.')
	into := m.mapping(to[:at], key)
	if into == nil {
		return
	}
	if value.ShortTag() == "!!null" && value.Value == "" {
		value.Value = "null" // in another style it would be text
	}
	document.Cut(m.root, key)
	key.Value = to[at+1:]
	into.Content = append(into.Content, key, value)
	m.changes = append(m.changes, Change{From: from, To: to, Line: key.Line})
}

// mapping returns the mapping at path, which it makes before key if there is none; nil when
// something else is there.
func (m *migration) mapping(path string, key *yaml.Node) *yaml.Node {
	in := m.root
	for name := range strings.SplitSeq(path, ".") {
		k, v := document.Find(in, name)
		switch {
		case k == nil:
			k = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: key.Line, Column: key.Column}
			v = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: key.Line, Column: key.Column}
			at := len(in.Content)
			if in == m.root {
				at = slices.Index(in.Content, key)
			}
			in.Content = slices.Insert(in.Content, at, k, v)
		case v.Kind == yaml.ScalarNode && v.ShortTag() == "!!null":
			*v = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: v.Line, Column: v.Column}
		case v.Kind != yaml.MappingNode:
			return nil
		}
		in = v
	}
	return in
}
