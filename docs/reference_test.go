package docs_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	"github.com/stretchr/testify/require"
)

// golden compares pages, by name, with their files, or writes these: go test ./docs -update.
func golden(t *testing.T, pages map[string][]byte) {
	t.Helper()
	for name, text := range pages {
		if flag.Lookup("update").Value.String() == "true" {
			require.NoError(t, os.WriteFile(name, text, 0o644))
		}
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.True(t, string(text) == string(got), "docs/%s is not up to date: run make generate", name)
	}
}

// writeTables writes a table of the fields that are no sections, and for each section a
// heading, its description, and its own table.
func writeTables(b *strings.Builder, s *jsonschema.Schema) {
	w := tableWriter{b: b, lists: map[string]string{}}
	w.head()
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if inner(p.Value) == nil {
			w.field("", p.Key, p.Value, s)
		}
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if section := inner(p.Value); section != nil {
			name := p.Key
			if p.Value.Type == "array" {
				name += "[]"
			}
			fmt.Fprintf(b, "\n## %s\n%s\n", name, p.Value.Description)
			w.section = name + "."
			w.head()
			w.fields("", section)
		}
	}
}

// tableWriter writes tables.
type tableWriter struct {
	b       *strings.Builder
	section string            // the table's, before the names of its fields
	lists   map[string]string // by the fields of their items, the first list of each kind
}

// inner is the schema of what a section holds; nil of a field that is none.
func inner(s *jsonschema.Schema) *jsonschema.Schema {
	switch {
	case s.Type == "array" && s.Items != nil && s.Items.Properties != nil && s.Items.Properties.Len() > 0:
		return s.Items
	case s.Properties != nil && s.Properties.Len() > 0:
		return s
	}
	return nil
}

// head writes the head of a table.
func (w tableWriter) head() { w.b.WriteString("\n| field | type | default | |\n|-|-|-|-|\n") }

// fields writes the fields of a section, those of sections in it included, below a path in
// the table's section.
func (w tableWriter) fields(path string, s *jsonschema.Schema) {
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		w.field(path, p.Key, p.Value, s)
	}
}

// field writes a field of the schema of.
func (w tableWriter) field(path, name string, s, of *jsonschema.Schema) {
	at := path + name
	section, item := inner(s), entryOf(s)
	switch {
	case section != nil && s.Type == "array":
		text, err := json.Marshal(section)
		if err != nil {
			text = []byte(err.Error())
		}
		if same, ok := w.lists[string(text)]; ok {
			w.row(at+"[]", "list", fallback(s, of, name), about(s)+" Its fields are those of `"+same+"`.")
			return
		}
		w.lists[string(text)] = w.section + at + "[]"
		w.row(at+"[]", "list", fallback(s, of, name), about(s))
		w.fields(at+"[].", section)
	case section != nil:
		w.fields(at+".", section)
	case item != nil:
		w.row(at, "mapping", "", cell(s.Description))
		w.fields(at+".NAME.", item)
	default:
		w.row(at, kind(s), fallback(s, of, name), about(s))
	}
}

func (w tableWriter) row(field, kind, fallback, about string) {
	if fallback != "" {
		fallback += " "
	}
	fmt.Fprintf(w.b, "| `%s` | %s | %s| %s |\n", field, kind, fallback, about)
}

// entryOf is the schema of the values of a mapping, if these have fields.
func entryOf(s *jsonschema.Schema) *jsonschema.Schema {
	if a := s.AdditionalProperties; a != nil && a.Properties != nil && a.Properties.Len() > 0 {
		return a
	}
	return nil
}

// secret is the type of a reference to a secret.
const secret = "*secret*"

// kind is the type of a field, for people.
func kind(s *jsonschema.Schema) string {
	text := map[string]string{"string": "text", "integer": "number", "boolean": "boolean", "array": "list", "object": "mapping"}[s.Type]
	switch {
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		text = strings.Join(values, ", ")
	case strings.HasPrefix(s.Pattern, "^(env:"):
		text = secret
	case s.AdditionalProperties != nil && strings.HasPrefix(s.AdditionalProperties.Pattern, "^(env:"):
		text = "mapping of *secrets*"
	}
	if s.Extras["x-interpolate"] == true {
		text += ", *env*"
	}
	return text
}

// fallback is the default of a field of the schema of, or that the field has none and is
// required.
func fallback(s, of *jsonschema.Schema, name string) string {
	if slices.Contains(of.Required, name) {
		return "required"
	}
	return preset(s)
}

// preset is the default of a field; empty if that is nothing.
func preset(s *jsonschema.Schema) string {
	text, err := json.Marshal(s.Default)
	switch string(text) {
	case `""`, "null", "[]", "{}", "false":
		return ""
	}
	if err != nil {
		return err.Error()
	}
	return "`" + strings.Trim(string(text), `"`) + "`"
}

// about is what a field is for, with an example of a list or a mapping.
func about(s *jsonschema.Schema) string {
	text := cell(s.Description)
	if len(s.Examples) == 0 || s.Type != "array" && s.Type != "object" || preset(s) != "" {
		return text
	}
	example, err := json.Marshal(s.Examples[0])
	if err != nil {
		example = []byte(err.Error())
	}
	return text + " Example: `" + strings.ReplaceAll(string(example), "|", `\|`) + "`"
}

// cell is text for a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) // which would be a tag of HTML
}
