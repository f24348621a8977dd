package docs_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/slipway-sh/slipway/config/platform"
)

// platformSchema is the JSON schema of platform.yaml, for editors and the reference. comments
// describe the types and their fields, as the reflector's AddGoComments collects them. It has the
// names, the types and the fixed values of fields; platform.Load checks all else.
func platformSchema(comments map[string]string) *jsonschema.Schema {
	r := jsonschema.Reflector{
		DoNotReference: true, ExpandedStruct: true, Anonymous: true,
		CommentMap: comments,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			if t == reflect.TypeFor[json.RawMessage]() {
				return &jsonschema.Schema{Type: "object"}
			}
			return nil
		},
	}
	s := r.Reflect(&platform.Release{})
	complete(s, reflect.New(reflect.TypeFor[platform.Release]()).Elem())
	s.ID, s.Title, s.Description = platform.SchemaID, "Slipway platform release", "What a platform consists of, and in which order it is installed."
	return s
}

// complete adds to the schema of a struct what its defaults, which v gets, and its
// validation say.
func complete(s *jsonschema.Schema, v reflect.Value) {
	if d, ok := v.Addr().Interface().(interface{ SetDefaults() }); ok {
		d.SetDefaults()
	}
	t := v.Type()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		p, ok := s.Properties.Get(name)
		if !ok {
			continue
		}
		p.Description = sentence(p.Description)
		switch value, kind := v.Field(i), t.Field(i).Type; {
		case kind.Kind() == reflect.Pointer:
			complete(p, reflect.New(kind.Elem()).Elem())
		case kind.Kind() == reflect.Struct:
			complete(p, value)
		case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct:
			complete(p.Items, reflect.New(kind.Elem()).Elem())
		case !value.IsZero():
			p.Default = value.Interface()
			s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
		}
		for _, value := range platform.Enums()[t.Name()+"."+name] {
			p.Enum = append(p.Enum, value)
		}
	}
}

// defaultRE is what a comment says about a default, which a schema has a field for.
var defaultRE = regexp.MustCompile(`; default [^;]*$`)

// sentence is a comment as a sentence.
func sentence(comment string) string {
	s := defaultRE.ReplaceAllString(strings.ReplaceAll(comment, "\n", " "), "")
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}
