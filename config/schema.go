package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

// SchemaID identifies the schema of this version.
const SchemaID = "https://slipway.sh/schema/config-v1.json"

// Section describes the section of a provider.
type Section struct {
	Name     string
	Settings any // a struct with the defaults in it and the JSON schema in its tags
	// Summary describes the provider in a few words, for choosing one.
	Summary string
	// Private means that only the user reaches the platform, so that the default
	// domain will do.
	Private bool
}

// Extensions of the schema, for slipway configure.
const (
	SummaryExtension = "x-summary" // Section.Summary
	PrivateExtension = "x-private" // Section.Private
)

// Schema returns the JSON schema of the user's file, for editors. The first of sections is
// the default provider's. Load checks more than a schema can say.
func Schema(sections []Section) ([]byte, error) {
	b, err := json.MarshalIndent(Describe(sections), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the config's schema: %w", err)
	}
	return append(b, '\n'), nil
}

// Describe returns the schema that Schema encodes.
func Describe(sections []Section) *jsonschema.Schema {
	c := Default()
	if len(sections) > 0 {
		c.Provider = sections[0].Name
	}
	s := reflected(*c, func(s *jsonschema.Schema) {
		s.ID = SchemaID
		s.Title = "Slipway configuration"
		s.Description = "A deployment of a platform: what is installed, and where."
	})
	provider, _ := s.Properties.Get("provider")
	for _, section := range slices.SortedFunc(slices.Values(sections), func(a, b Section) int { return strings.Compare(a.Name, b.Name) }) {
		provider.Enum = append(provider.Enum, section.Name)
		s.Properties.Set(section.Name, reflected(section.Settings, func(s *jsonschema.Schema) {
			s.Description = "Settings of the provider " + section.Name + "."
			if section.Summary != "" {
				extra(s, SummaryExtension, section.Summary)
			}
			if section.Private {
				extra(s, PrivateExtension, true)
			}
		}))
	}
	return s
}

// reflected returns the schema of a struct. The default of every optional field is its
// value in v.
func reflected(v any, complete func(*jsonschema.Schema)) *jsonschema.Schema {
	r := jsonschema.Reflector{
		DoNotReference:             true,
		ExpandedStruct:             true,
		Anonymous:                  true,
		RequiredFromJSONSchemaTags: true,
		Mapper:                     mapped,
	}
	s := r.Reflect(v)
	s.Version = ""
	defaults(s, reflect.ValueOf(v))
	complete(s)
	if s.ID != "" {
		s.Version = jsonschema.Version
	}
	return s
}

// mapped returns the schema of types that the reflector does not handle.
func mapped(t reflect.Type) *jsonschema.Schema {
	if t == reflect.TypeFor[json.RawMessage]() {
		return &jsonschema.Schema{Type: "object"}
	}
	return nil
}

// defaults adds the values of a struct to its schema as defaults. Items of mappings and
// lists have no defaults.
func defaults(s *jsonschema.Schema, v reflect.Value) {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || s.Properties == nil {
		return
	}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		p, ok := s.Properties.Get(name)
		if !ok {
			continue
		}
		field := v.Field(i)
		if len(p.Examples) == 0 {
			p.Examples = examples(v.Type().Field(i).Tag.Get("example"))
		}
		if v.Type().Field(i).Tag.Get("interpolate") == "true" {
			extra(p, "x-interpolate", true) // the value may refer to environment variables
		}
		if field.Kind() == reflect.Struct {
			defaults(p, field)
			continue
		}
		item := p.AdditionalProperties
		if p.Items != nil {
			item = p.Items
		}
		if (field.Kind() == reflect.Map || field.Kind() == reflect.Slice) && item != nil {
			defaults(item, zero(field.Type().Elem()))
		}
		if slices.Contains(s.Required, name) || p.Default != nil {
			continue
		}
		p.Default = value(field)
	}
}

func extra(s *jsonschema.Schema, name string, value any) {
	if s.Extras == nil {
		s.Extras = map[string]any{}
	}
	s.Extras[name] = value
}

// examples returns the example in a tag, which is JSON, for types that the reflector does
// not support examples of.
func examples(tag string) []any {
	var v any
	if tag == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(tag), &v); err != nil { // a mistake in one of our types
		panic(fmt.Sprintf("config: example %s: %v", tag, err))
	}
	return []any{v}
}

// zero returns an element of a list or mapping in which nothing is set.
func zero(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	if s, ok := v.Interface().(interface{ SetDefaults() }); ok {
		s.SetDefaults()
	}
	return v.Elem()
}

// value returns a default for JSON: the value that a field has if it is left out.
func value(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		return nil
	case reflect.Map:
		return map[string]any{}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			return map[string]any{}
		}
		return []any{}
	}
	return v.Interface()
}

// JSONSchema describes a duration.
func (Duration) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
}

// JSONSchema describes a reference.
func (SecretRef) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: refPattern}
}
