// Package answers builds a configuration from answers: text for fields, from flags, the environment, a
// file or a form, which is on a terminal or, for screen readers, one question after another. The possible
// answers and the questions are derived from the configuration's JSON schema.
package answers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
)

// Type is the type of a field.
type Type string

// The types.
const (
	Text    Type = "text"
	Number  Type = "a whole number"
	Decimal Type = "a number"
	Bool    Type = "true or false"
	List    Type = "a list"    // of text or whole numbers: a,b
	Mapping Type = "a mapping" // of text: KEY=value,KEY=value
	Other   Type = "YAML"      // anything else, written as YAML
)

// Field is a setting that an answer can be given for.
type Field struct {
	Path     string // "global.name"
	Type     Type
	Help     string   // description from the schema, one line or more
	Options  []string // the permitted answers; nil if there are others
	Default  string   // in the form of an answer; may be empty
	Example  string   // in the form of an answer; may be empty
	Examples []string // all examples, beginning with Example
	Required bool     // a file without it is not valid

	secret      bool   // it is a reference to a secret
	within      string // optional mapping within which alone the field is required
	numbers     bool   // it is a list of whole numbers
	interpolate bool   // ${NAME} in it is an environment variable
}

// EnvName returns the environment variable that sets the field.
func (f Field) EnvName() string { return config.EnvName(f.Path) }

// Schema describes the fields of a configuration.
type Schema struct{ root *jsonschema.Schema }

// NewSchema adds the schema of the platform release's own settings, JSON, to the schema of
// a configuration from config.Describe. Without settings it is nil.
func NewSchema(s *jsonschema.Schema, settings []byte) *Schema {
	if settings != nil {
		var own jsonschema.Schema
		platform, _ := s.Properties.Get("platform")
		// The fields of a schema that this type cannot represent are not asked for.
		if err := json.Unmarshal(settings, &own); err == nil && own.Properties != nil {
			platform.Properties.Set("settings", &own)
		}
	}
	return &Schema{s}
}

// order returns the names of the fields of a mapping in the order of its schema.
func order(s *jsonschema.Schema) []string {
	var out []string
	if s != nil && s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			out = append(out, p.Key)
		}
	}
	return out
}

// Help returns the description of a field or section; empty if it is unknown.
func (s *Schema) Help(path string) string {
	if at, _, _ := s.find(path); at != nil {
		return at.Description
	}
	return ""
}

// extension returns the value of an extension of a section's schema; nil when it has none.
func (s *Schema) extension(section, name string) any {
	if at, _, _ := s.find(section); at != nil {
		return at.Extras[name]
	}
	return nil
}

// Provider returns the provider of a draft: the default one if it names none.
func (s *Schema) Provider(d *Draft) string {
	return cmp.Or(d.Get("provider"), s.question("provider").Default)
}

// find returns the schema of the field at path, and whether its mapping requires it. If it
// is unknown, the problem suggests a similar name.
func (s *Schema) find(path string) (at *jsonschema.Schema, required bool, wrong *config.Problem) {
	at = s.root
	walked := ""
	for name := range strings.SplitSeq(path, ".") {
		next, known := (*jsonschema.Schema)(nil), false
		if at.Properties != nil {
			next, known = at.Properties.Get(name)
		}
		required = slices.Contains(at.Required, name)
		switch {
		case known:
		case anyName(at.AdditionalProperties):
			next = at.AdditionalProperties
		case at.Type == "object" && at.Properties == nil && at.AdditionalProperties == nil:
			next = &jsonschema.Schema{}
		case name == "" || at.Type != "object" && at.Type != "" || at.Properties == nil:
			return nil, false, &config.Problem{Field: path, Got: document.Unknown, Want: "a field of the configuration, such as global.name"}
		default:
			p := document.NoField(walked, name, order(at))
			return nil, false, &p
		}
		at = next
		walked = strings.TrimPrefix(walked+"."+name, ".")
	}
	return at, required, nil
}

// anyName reports whether a mapping accepts names that its schema does not list.
func anyName(additional *jsonschema.Schema) bool {
	if additional == nil {
		return false
	}
	text, err := additional.MarshalJSON()
	return err == nil && string(text) != "false"
}

// Field returns the field of that path. One that does not exist, or is a section, is a
// problem.
func (s *Schema) Field(path string) (Field, *config.Problem) {
	at, required, wrong := s.find(path)
	if wrong != nil {
		return Field{}, wrong
	}
	if at.Properties != nil && at.Properties.Len() > 0 {
		return Field{}, &config.Problem{Field: path, Got: "an answer for a section", Want: "one for a field in it: " + strings.Join(order(at), ", ")}
	}
	f := Field{Path: path, Type: typeOf(at), Help: at.Description, Required: required}
	f.numbers = f.Type == List && at.Items.Type == "integer"
	f.secret = strings.HasPrefix(at.Pattern, "^(env:")
	f.within = s.optional(path)
	f.interpolate, _ = at.Extras["x-interpolate"].(bool)
	for _, v := range at.Enum {
		f.Options = append(f.Options, formatAnswer(v))
	}
	if at.Default != nil {
		f.Default = formatAnswer(at.Default)
	}
	for _, v := range at.Examples {
		f.Examples = append(f.Examples, formatAnswer(v))
	}
	if len(f.Examples) > 0 {
		f.Example = f.Examples[0]
	}
	return f, nil
}

// optional returns the outermost optional mapping of the platform's settings around a
// field; empty if there is none.
func (s *Schema) optional(path string) string {
	const settings = "platform.settings."
	if !strings.HasPrefix(path, settings) {
		return ""
	}
	names := strings.Split(strings.TrimPrefix(path, settings), ".")
	for i := range len(names) - 1 {
		around := settings + strings.Join(names[:i+1], ".")
		if _, required, wrong := s.find(around); wrong == nil && !required {
			return around
		}
	}
	return ""
}

func typeOf(s *jsonschema.Schema) Type {
	switch s.Type {
	case "string":
		return Text
	case "integer":
		return Number
	case "number":
		return Decimal
	case "boolean":
		return Bool
	case "array":
		if s.Items != nil && (s.Items.Type == "string" || s.Items.Type == "integer") {
			return List
		}
	case "object":
		if s.AdditionalProperties != nil && s.AdditionalProperties.Type == "string" {
			return Mapping
		}
	}
	return Other
}

// formatAnswer formats a value of the schema as an answer.
func formatAnswer(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, formatAnswer(item))
		}
		return strings.Join(items, ",")
	case map[string]any:
		var items []string
		for key, value := range v {
			items = append(items, key+"="+formatAnswer(value))
		}
		slices.Sort(items)
		return strings.Join(items, ",")
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// Fields returns all fields below a section, or all fields for "", in the order of the
// schema, without those in mappings with arbitrary keys.
func (s *Schema) Fields(section string) []Field {
	at := s.root
	if section != "" {
		at, _, _ = s.find(section) // nil: order has no names
	}
	var out []Field
	for _, path := range s.paths(section, at) {
		if f, wrong := s.Field(path); wrong == nil { // it is no section
			out = append(out, f)
		}
	}
	return out
}

// paths returns the paths of all fields and sections below a section.
func (s *Schema) paths(section string, at *jsonschema.Schema) []string {
	var out []string
	for _, name := range order(at) {
		path := strings.TrimPrefix(section+"."+name, ".")
		p, _ := at.Properties.Get(name)
		out = append(append(out, path), s.paths(path, p)...)
	}
	return out
}

func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.Contains(s, "\n") {
		n.Style = yaml.LiteralStyle
	}
	if !readsBack(n) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// readsBack reports whether a text survives being written and read again, which the YAML
// library does not ensure for some, such as <<.
func readsBack(n *yaml.Node) bool {
	b, err := yaml.Marshal(n)
	var back yaml.Node
	if err != nil || yaml.Unmarshal(b, &back) != nil || len(back.Content) != 1 {
		return false
	}
	return document.IsText(back.Content[0]) && back.Content[0].Value == n.Value
}

// node converts an answer to the field's value in the file.
func (f Field) node(answer string) (*yaml.Node, *config.Problem) {
	switch f.Type {
	case Text:
		return text(answer), nil
	case List:
		out := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for item := range strings.SplitSeq(answer, ",") {
			item = strings.TrimSpace(item)
			switch {
			case item == "":
				return nil, f.wrong("a list with an empty item", "items separated by commas")
			case f.numbers && !isNumber(item):
				return nil, f.wrong(document.Quote(item), "whole numbers separated by commas")
			case f.numbers:
				out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: item})
			default:
				out.Content = append(out.Content, text(item))
			}
		}
		return out, nil
	case Mapping:
		out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for item := range strings.SplitSeq(answer, ",") {
			key, v, ok := strings.Cut(strings.TrimSpace(item), "=")
			if !ok || key == "" {
				return nil, f.wrong(document.QuoteKey(item), "NAME=value, separated by commas")
			}
			out.Content = append(out.Content, text(key), text(v))
		}
		return out, nil
	}
	var n yaml.Node
	tags := map[Type][]string{Number: {"!!int"}, Decimal: {"!!int", "!!float"}, Bool: {"!!bool"}}[f.Type]
	switch err := yaml.Unmarshal([]byte(answer), &n); {
	case tags != nil && (err != nil || len(n.Content) != 1 || !slices.Contains(tags, n.Content[0].ShortTag())):
		want := string(f.Type)
		if len(f.Options) > 0 {
			want = document.OneOf(f.Options...)
		}
		return nil, f.wrong(document.Quote(answer), want)
	case err != nil || len(n.Content) != 1:
		return nil, f.wrong("something that is not YAML", `a value in YAML, such as {replicas: 2}`)
	}
	return n.Content[0], nil
}

func (f Field) wrong(got, want string) *config.Problem {
	return &config.Problem{Field: f.Path, Got: got, Want: want}
}

func isNumber(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && strconv.Itoa(n) == text
}
