// Package reference writes tables of the fields that a JSON schema has, and the files of
// such pages.
package reference

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

// Save writes files, by name, into a directory.
func Save(dir string, files map[string][]byte) error {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Write writes a table of the fields that are no sections, and for each section a
// heading, what it is for, and a table of its own.
func Write(b *strings.Builder, s *jsonschema.Schema) {
	table(b, "", s)
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if section := inner(p.Value); section != nil {
			name := p.Key
			if p.Value.Type == "array" {
				name += "[]"
			}
			fmt.Fprintf(b, "\n## %s\n%s\n", p.Key, p.Value.Description)
			table(b, name, section)
		}
	}
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

// table writes the fields of a section, those of sections in it included.
func table(b *strings.Builder, path string, s *jsonschema.Schema) {
	b.WriteString("\n| field | type | default | |\n|---|---|---|---|\n")
	rows(b, path, s)
}

func rows(b *strings.Builder, path string, s *jsonschema.Schema) {
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		field := strings.TrimPrefix(path+"."+p.Key, ".")
		if path == "" && inner(p.Value) != nil {
			continue // it has a table of its own
		}
		if section := inner(p.Value); section != nil {
			if p.Value.Type == "array" {
				fmt.Fprintf(b, "| `%s` | list | %s | %s |\n", field, fallback(p.Value, slices.Contains(s.Required, p.Key)), about(p.Value))
				field += "[]"
			}
			rows(b, field, section)
			continue
		}
		if item := entry(p.Value); item != nil {
			fmt.Fprintf(b, "| `%s` | mapping | | %s |\n", field, cell(p.Value.Description))
			rows(b, field+".NAME", item)
			continue
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", field, kind(p.Value), fallback(p.Value, slices.Contains(s.Required, p.Key)), about(p.Value))
	}
}

// entry is the schema of the values of a mapping, if these have fields.
func entry(s *jsonschema.Schema) *jsonschema.Schema {
	if a := s.AdditionalProperties; a != nil && a.Properties != nil && a.Properties.Len() > 0 {
		return a
	}
	return nil
}

// kind is the type of a field, for people.
func kind(s *jsonschema.Schema) string {
	text := map[string]string{"string": "text", "integer": "number", "boolean": "true or false", "array": "list", "object": "mapping"}[s.Type]
	switch {
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		text = strings.Join(values, ", ")
	case strings.HasPrefix(s.Pattern, "^(env:"):
		text = "*secret*"
	case s.AdditionalProperties != nil && strings.HasPrefix(s.AdditionalProperties.Pattern, "^(env:"):
		text = "mapping of *secrets*"
	}
	if s.Extras["x-interpolate"] == true {
		text += ", *env*"
	}
	return text
}

func fallback(s *jsonschema.Schema, required bool) string {
	if required {
		return "**required**"
	}
	text, err := json.Marshal(s.Default)
	switch string(text) {
	case `""`, "null", "[]", "{}":
		return ""
	}
	if err != nil {
		return err.Error()
	}
	return "`" + strings.Trim(string(text), `"`) + "`"
}

func about(s *jsonschema.Schema) string {
	text := cell(s.Description)
	if names, ok := s.Extras["x-suggested-by"].([]string); ok {
		text += " Suggested by: " + strings.Join(names, ", ") + "."
	}
	var examples []string
	for _, e := range s.Examples {
		example, ok := e.(string)
		if !ok {
			js, err := json.Marshal(e)
			example = string(js)
			if err != nil {
				example = err.Error()
			}
		}
		if !strings.Contains(example, "\n") && !strings.Contains(example, "-----") {
			examples = append(examples, "`"+strings.ReplaceAll(example, "|", `\|`)+"`")
		}
	}
	if len(examples) > 0 {
		text += " Example: " + strings.Join(examples, ", ")
	}
	return text
}

// cell is text for a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) // which would be a tag of HTML
}
