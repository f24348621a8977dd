// Writes docs/config.schema.json and docs/configuration.md from the types of the
// configuration: go run ./docs/configuration
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/slipway-sh/slipway/config"
	providers "github.com/slipway-sh/slipway/providers/all"
)

// The files, in docs.
const (
	schemaFile = "config.schema.json"
	pageFile   = "configuration.md"
)

func main() {
	if err := write("docs"); err != nil {
		fmt.Fprintln(os.Stderr, "configuration:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate makes the files.
func generate() (map[string][]byte, error) {
	text, err := config.Schema(providers.All().Sections())
	if err != nil {
		return nil, err
	}
	return map[string][]byte{schemaFile: text, pageFile: page(config.Describe(providers.All().Sections()))}, nil
}

const intro = `# The configuration

<!-- Written by go run ./docs/configuration; a change made here is undone by it. -->

A deployment is described by one YAML file, and nothing asks again. ` + "`slipway validate --config FILE`" + ` reports every problem at once and starts nothing. Everything but ` + "`apiVersion`" + ` has a default or is optional; [examples/config](../examples/config) has files to begin with.

Editors with a YAML language server complete and check the file when it begins with this line; [config.schema.json](config.schema.json) is the schema, which ` + "`slipway schema`" + ` prints as well:

` + "```yaml" + `
# yaml-language-server: $schema=https://raw.githubusercontent.com/slipway-sh/slipway/main/docs/config.schema.json
apiVersion: slipway.sh/v1
` + "```" + `

**Secrets** are never in the file, only where they are: ` + "`env:NAME`, `file:PATH`, `cmd:COMMAND`" + ` (what a shell command prints), ` + "`vault:PATH.KEY`" + ` (HashiCorp Vault, a KV store of version 2 below ` + "`secret`" + ` or VAULT_PATH_PREFIX; VAULT_ADDR and so on) and ` + "`op:VAULT/ITEM/FIELD`" + ` (1Password; OP_SERVICE_ACCOUNT_TOKEN, or the command op). Their type below is *secret*.

**Environment variables** are replaced where a field is marked with *env*: ` + "`${NAME}`, or `${NAME:-default}`" + `; ` + "`$$`" + ` is a dollar sign.

**` + "`slipway configure`" + `** makes the file: it asks for the fields of the chosen provider and platform in a form, or takes answers: ` + "`--set global.name=staging`" + `, a file of ` + "`--answers`" + `, or variables: a field's path in capitals after SLIPWAY_CONFIG_, so that ` + "`aws.vpcId`" + ` is SLIPWAY_CONFIG_AWS_VPC_ID. For some fields variables of other programs, named below, suggest one.

**Older files** (` + "`version: 1`" + `, ` + "`slipway.sh/v1alpha1`, `slipway.sh/v1beta1`" + `) are read as they are, and told of. ` + "`slipway config migrate --config FILE`" + ` writes them anew, and keeps the original beside them.
`

// page is the reference of all fields.
func page(s *jsonschema.Schema) []byte {
	var b strings.Builder
	b.WriteString(intro)
	table(&b, "", s)
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if section := inner(p.Value); section != nil {
			name := p.Key
			if p.Value.Type == "array" {
				name += "[]"
			}
			fmt.Fprintf(&b, "\n## %s\n%s\n", p.Key, p.Value.Description)
			table(&b, name, section)
		}
	}
	return []byte(b.String())
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

func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) // which would be a tag of HTML
}
