package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config"
	providers "github.com/slipway-sh/slipway/providers/all"
)

const configurationIntro = `# The configuration

<!-- Written by go test ./docs -update; a change made here is undone by it. -->

All fields of the YAML file that describes a deployment; only ` + "`apiVersion`" + ` is required. [configure.md](configure.md) says how to make the file, [examples/config](../examples/config) has files to begin with.

With this first line, editors with a YAML language server complete and check the file against [config.schema.json](config.schema.json), which ` + "`slipway schema`" + ` prints. The schema also has the settings of providers on which Slipway cannot install yet.

` + "```" + `yaml
# yaml-language-server: $schema=https://raw.githubusercontent.com/slipway-sh/slipway/main/docs/config.schema.json
apiVersion: slipway.sh/v1
` + "```" + `

**Secrets** (type *secret*) are references: ` + "`env:NAME`" + `, ` + "`file:PATH`" + `, ` + "`cmd:COMMAND`" + ` (the output of a shell command), ` + "`vault:PATH.KEY`" + ` (HashiCorp Vault, KV version 2 below ` + "`secret`" + ` or VAULT_PATH_PREFIX, at VAULT_ADDR) or ` + "`op:VAULT/ITEM/FIELD`" + ` (1Password; OP_SERVICE_ACCOUNT_TOKEN, or the command op). Component values, the release's settings and a hook's ` + "`run`" + `, ` + "`script`" + ` and ` + "`env`" + ` are plain text, also in run records and in the cluster; Slipway warns if such a text looks like a secret.

**Environment variables** are replaced in fields of type *env*: ` + "`${NAME}`" + `, or ` + "`${NAME:-default}`" + `; ` + "`$$`" + ` is a dollar sign.

**Older files** (` + "`version: 1`" + `, ` + "`slipway.sh/v1alpha1`" + `) still work, with a warning. ` + "`slipway config migrate --config FILE`" + ` updates a file and keeps the original beside it.
`

// configurationPage is the reference of all fields, without those of providers on which Slipway cannot
// install yet.
func configurationPage() []byte {
	registry := providers.All()
	s := config.Describe(registry.Sections())
	for _, name := range registry.Names() {
		if _, err := registry.Get(name); err != nil {
			s.Properties.Delete(name)
		}
	}
	var b strings.Builder
	b.WriteString(configurationIntro)
	writeTables(&b, s)
	return []byte(b.String())
}

func TestConfigurationPages(t *testing.T) {
	text, err := config.Schema(providers.All().Sections())
	require.NoError(t, err)
	golden(t, map[string][]byte{"config.schema.json": text, "configuration.md": configurationPage()})
}

// field is a field of the schema with the path to it, in which a list or mapping has
// one entry.
type field struct {
	path     []string // "hooks", "0", "name"
	schema   *jsonschema.Schema
	required bool
}

func (f field) name() string {
	name := ""
	for _, part := range f.path {
		switch {
		case part == "0":
			name += "[0]"
		case name == "":
			name = part
		default:
			name += "." + part
		}
	}
	return name
}

// fields are all fields of a schema, the sections too.
func fields(t *testing.T) []field {
	t.Helper()
	text, err := config.Schema(providers.All().Sections())
	require.NoError(t, err)
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(text, &s))
	return below(nil, &s)
}

func below(path []string, s *jsonschema.Schema) []field {
	var out []field
	add := func(name string, inner *jsonschema.Schema, required bool) {
		at := append(slices.Clone(path), name)
		out = append(out, field{at, inner, required})
		out = append(out, below(at, inner)...)
	}
	switch {
	case s.Type == "array" && s.Items != nil && s.Items.Properties != nil:
		return below(append(slices.Clone(path), "0"), s.Items)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Properties != nil && s.Properties == nil:
		return below(append(slices.Clone(path), "some"), s.AdditionalProperties)
	case s.Properties == nil:
		return nil
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		add(p.Key, p.Value, slices.Contains(s.Required, p.Key))
	}
	return out
}

// leaf tells whether a field holds a value.
func (f field) leaf() bool { return len(below(nil, f.schema)) == 0 }

func TestEveryFieldIsDescribed(t *testing.T) {
	all := fields(t)
	require.Greater(t, len(all), 50)
	for _, f := range all {
		require.NotEmpty(t, f.schema.Description, f.name())
		if !f.leaf() {
			continue
		}
		told := strings.Contains(f.schema.Description, "when left out")
		require.True(t, f.required || f.schema.Default != nil || f.schema.Type == "boolean" || told, "%s is neither required nor has it a default", f.name())
		require.NotEmpty(t, f.schema.Examples, "%s has no example", f.name())
	}
}

// nested is a file in which the field has that value.
func (f field) nested(value any) map[string]any {
	for _, part := range slices.Backward(f.path) {
		if part == "0" {
			value = []any{value}
		} else {
			value = map[string]any{part: value}
		}
	}
	file := value.(map[string]any)
	if f.path[0] != "apiVersion" {
		file["apiVersion"] = config.APIVersion
	}
	if slices.Contains(providers.All().Names(), f.path[0]) {
		file["provider"] = f.path[0]
	}
	return file
}

// load are the fields that the loader finds to be wrong.
func load(t *testing.T, file map[string]any) []string {
	t.Helper()
	text, err := yaml.Marshal(file)
	require.NoError(t, err)
	providers := providers.All()
	_, err = config.Load(text, providers.Options())
	var names []string
	for _, p := range config.Problems(err) {
		names = append(names, p.Field)
	}
	return names
}

// A value of another type is refused, by the name of the field.
func TestAWrongValueIsNamed(t *testing.T) {
	for _, f := range fields(t) {
		if f.path[0] == "apiVersion" {
			continue // it is what decides how the rest is read
		}
		var wrong any = []any{map[string]any{"wrong": 1}}
		if f.schema.Type == "array" {
			wrong = "wrong"
		}
		named := slices.ContainsFunc(load(t, f.nested(wrong)), func(name string) bool {
			return name == f.name() || strings.HasPrefix(name, f.name()+".") || strings.HasPrefix(name, f.name()+"[")
		})
		require.True(t, named, "%s: got %v", f.name(), load(t, f.nested(wrong)))
	}
}

// beside are the fields without which others of their section, or one field of it, may
// not be there.
var beside = map[string]map[string]any{
	"tls":           {"mode": "given"},
	"state":         {"url": "s3://bucket"},
	"smtp":          {"host": "mail.example.com", "username": "me"},
	"observability": {"endpoint": "https://metrics.example.com", "username": "me"},
	"git":           {"url": "https://git.example.com/team/platform.git", "username": "me"},
	"git.sshKey":    {"url": "git@git.example.com:team/platform.git"},
}

// An example is what it says: the loader has nothing against it, whatever else the
// file lacks.
func TestExamplesAreAccepted(t *testing.T) {
	for _, f := range fields(t) {
		for _, example := range f.schema.Examples {
			if strings.Contains(fmt.Sprint(example), "…") {
				continue // an abridged certificate
			}
			file := f.nested(example)
			if section, ok := file[f.path[0]].(map[string]any); ok {
				more := beside[f.name()]
				if more == nil {
					more = beside[f.path[0]]
				}
				for key, value := range more {
					if _, set := section[key]; !set {
						section[key] = value
					}
				}
			}
			for _, name := range load(t, file) {
				require.NotEqual(t, f.name(), name, "the example %v of %s is refused", example, f.name())
			}
		}
	}
}

// Editors check a file with validators of their own: every example is valid for one
// that is not the schema's maker.
func TestTheSchemaAcceptsEveryExample(t *testing.T) {
	schema := compiled(t)
	files, err := filepath.Glob("../examples/config/*.yaml")
	require.NoError(t, err)
	require.Greater(t, len(files), 2)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		err = schema.Validate(document(t, text))
		if strings.HasPrefix(filepath.Base(file), "invalid-") {
			require.Error(t, err, file)
			continue
		}
		require.NoError(t, err, file)
	}
}

// What the schema says of a field that it refuses is what the loader says.
func TestTheSchemaRefusesWrongValues(t *testing.T) {
	schema := compiled(t)
	for _, text := range []string{
		"{}", "apiVersion: slipway.sh/v2", "apiVersion: slipway.sh/v1\nglobal: {scale: 75}", "apiVersion: slipway.sh/v1\nglobal: {nam: x}",
		"apiVersion: slipway.sh/v1\nprovider: moon", "apiVersion: slipway.sh/v1\naws: {}", "apiVersion: slipway.sh/v1\nhooks: [{name: a}]",
		"apiVersion: slipway.sh/v1\ntls: {key: hunter2}", "apiVersion: slipway.sh/v1\nadvanced: {timeouts: {app: soon}}",
	} {
		require.Error(t, schema.Validate(document(t, []byte(text))), text)
	}
	for _, text := range []string{
		"global: {domain: '${X}'}\ntls: {mode: given, key: 'env:KEY', certificate: x}",
		"hooks: [{name: a, after: workflow, workflows: [install, configure], run: [x]}, {name: b, before: a/b, run: [x]}]",
	} {
		require.NoError(t, schema.Validate(document(t, []byte("apiVersion: slipway.sh/v1\n"+text))), text)
	}
}

func compiled(t *testing.T) *validator.Schema {
	t.Helper()
	text, err := config.Schema(providers.All().Sections())
	require.NoError(t, err)
	doc, err := validator.UnmarshalJSON(strings.NewReader(string(text)))
	require.NoError(t, err)
	c := validator.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource(config.SchemaID, doc))
	schema, err := c.Compile(config.SchemaID)
	require.NoError(t, err)
	return schema
}

func document(t *testing.T, text []byte) any {
	t.Helper()
	js, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	doc, err := validator.UnmarshalJSON(strings.NewReader(string(js)))
	require.NoError(t, err)
	return doc
}
