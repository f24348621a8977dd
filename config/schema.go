package config

import (
	"encoding/json"
	"fmt"

	"github.com/invopop/jsonschema"
)

// SchemaID is the address that names the schema of this version.
const SchemaID = "https://slipway.sh/schema/config-v1.json"

// Schema is the JSON schema of the user's file, for editors, with the providers
// that can be chosen; none means the known ones. Load checks more than a schema
// can say.
func Schema(providers ...string) ([]byte, error) {
	if len(providers) == 0 {
		providers = Known()
	}
	r := jsonschema.Reflector{
		DoNotReference:             true,
		ExpandedStruct:             true,
		Anonymous:                  true,
		RequiredFromJSONSchemaTags: true,
	}
	s := r.Reflect(&Config{})
	s.ID = SchemaID
	s.Title = "Slipway configuration"
	choice, _ := s.Properties.Get("provider")
	choice.Enum = nil
	for _, name := range providers {
		choice.Enum = append(choice.Enum, name)
		s.Properties.Set(name, &jsonschema.Schema{
			Type: "object", Description: "Settings of the provider " + name + ", which reads them itself.",
		})
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the config's schema: %w", err)
	}
	return append(b, '\n'), nil
}

// JSONSchema describes a duration.
func (Duration) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
}

// JSONSchema describes a reference.
func (SecretRef) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: `^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$`}
}
