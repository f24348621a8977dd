package platform

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

// SchemaID identifies the schema of this version.
const SchemaID = "https://slipway.sh/schema/platform-v2.json"

// Schema returns the JSON schema of platform.yaml, for editors and the reference. comments
// describe this package's types and fields, as the reflector's AddGoComments collects
// them. It has the names, the types and the fixed values of fields; Load checks all else.
func Schema(comments map[string]string) *jsonschema.Schema {
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
	s := r.Reflect(&Release{})
	complete(s, reflect.New(reflect.TypeFor[Release]()).Elem())
	s.ID, s.Title, s.Description = SchemaID, "Slipway platform release", "What a platform consists of, and in which order it is installed."
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
		name := jsonName(t.Field(i))
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
		for _, value := range enums()[t.Name()+"."+name] {
			p.Enum = append(p.Enum, value)
		}
	}
}

// jsonName is the name of a field in platform.yaml; empty if it has none.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
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

// enums are the values of fields that have only some, by type and name.
func enums() map[string][]string {
	return map[string][]string{
		"Release.apiVersion": {APIVersion},
		"SecretKey.generate": {string(Password), string(Token), string(Literal), string(CopyOf), string(Given)},
		"Component.kind":     Kinds(),
		"Migration.when":     {string(Before), string(After)},
		"Remove.claims":      {RemoveDelete, RemoveKeep},
		"Remove.crds":        {RemoveDelete, RemoveKeep, RemoveUnused},
		"Finalizers.then":    {FinalizerStrip, FinalizerReport},
	}
}
