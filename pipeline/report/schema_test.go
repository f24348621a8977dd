package report_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

const (
	schemaFile = "../../docs/report.schema.json"
	schemaID   = "https://slipway.sh/schema/report-v1.json"
)

// schema returns the JSON schema of report.json, made from the types and what their
// comments and constants say. A strict one refuses what it does not name; the
// published one does not, so that it fits records of later programs too.
func schema(t *testing.T, strict bool) []byte {
	t.Helper()
	enum := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[pipeline.Status](): {Type: "string", Enum: constants(t, "..", "Status")},
		reflect.TypeFor[report.Outcome]():  {Type: "string", Enum: constants(t, ".", "Outcome")},
		reflect.TypeFor[report.Consent]():  {Type: "string", Enum: constants(t, ".", "Consent")},
		reflect.TypeFor[fault.Class]():     {Type: "integer", Enum: constants(t, "../../fault", "Class")},
		reflect.TypeFor[fault.Fault]():     faultSchema(),
	}
	r := jsonschema.Reflector{
		Anonymous: true, ExpandedStruct: true, AllowAdditionalProperties: !strict,
		Mapper: func(of reflect.Type) *jsonschema.Schema {
			if s, ok := enum[of]; ok {
				c := *s
				return &c
			}
			return nil
		},
	}
	require.NoError(t, r.AddGoComments("github.com/slipway-sh/slipway/pipeline/report", "./"))
	s := r.Reflect(&report.Run{})
	s.ID, s.Title = schemaID, "Record of a run of Slipway"
	b, err := json.MarshalIndent(s, "", "  ")
	require.NoError(t, err)
	return append(b, '\n')
}

func faultSchema() *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type: "object", Description: "An error that tells the user what to do next.",
		Properties: jsonschema.NewProperties(), Required: []string{"code", "class", "op", "fix", "message"},
	}
	for _, p := range []struct{ name, kind, what string }{
		{"code", "string", "kind of failure; docs/errors.md lists them"},
		{"class", "integer", "what a caller can do about it: the exit code"},
		{"op", "string", "what was attempted"},
		{"fix", "string", "what to do about it"},
		{"log", "string", "file with the full log, relative to the run's directory"},
		{"message", "string", "what went wrong"},
	} {
		s.Properties.Set(p.name, &jsonschema.Schema{Type: p.kind, Description: p.what})
	}
	return s
}

// constants returns the values of the constants of a type, in their order.
func constants(t *testing.T, dir, name string) []any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	var out []any
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				return true
			}
			literal, ok := v.Values[0].(*ast.BasicLit)
			of, named := v.Type.(*ast.Ident)
			if foreign, yes := v.Type.(*ast.SelectorExpr); yes { // of another package
				of, named = foreign.Sel, true
			}
			if ok && named && of.Name == name {
				if literal.Kind == token.INT {
					n, err := strconv.Atoi(literal.Value)
					require.NoError(t, err)
					out = append(out, n)
				} else {
					text, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					out = append(out, text)
				}
			}
			return true
		})
	}
	require.NotEmpty(t, out, name)
	return out
}

// TestSchema_published: the published schema is the one of the types.
func TestSchema_published(t *testing.T) {
	got := schema(t, false)
	if *update {
		require.NoError(t, os.WriteFile(schemaFile, got, 0o644))
	}
	want, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run make generate if this change is meant")
}

// TestSchema_validates with another program than the one that made it.
func TestSchema_validates(t *testing.T) {
	check := func(t *testing.T, text []byte) *validator.Schema {
		doc, err := validator.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		c := validator.NewCompiler()
		c.AssertFormat()
		require.NoError(t, c.AddResource(schemaID, doc))
		s, err := c.Compile(schemaID)
		require.NoError(t, err)
		return s
	}
	strict, published := check(t, schema(t, true)), check(t, schema(t, false))
	for name, r := range map[string]*report.Run{"succeeded": succeeded(), "failed": failed(), "phases": phased(), "started": startedRun("install", nil), "empty": {}} {
		if r.Outcome == "" {
			r.Outcome = report.Running
		}
		b, err := r.Encode()
		require.NoError(t, err)
		doc, err := validator.UnmarshalJSON(bytes.NewReader(b))
		require.NoError(t, err)
		require.NoError(t, strict.Validate(doc), name)
		require.NoError(t, published.Validate(doc), name)
	}
	for _, change := range []func(map[string]any){
		func(doc map[string]any) { doc["outcome"] = "great" },
		func(doc map[string]any) { delete(doc, "steps") },
		func(doc map[string]any) { doc["started"] = "yesterday" },
		func(doc map[string]any) { doc["steps"].([]any)[0].(map[string]any)["status"] = 1 },
		func(doc map[string]any) { delete(doc["fault"].(map[string]any), "code") },
	} {
		b, err := failed().Encode()
		require.NoError(t, err)
		var doc map[string]any
		require.NoError(t, json.Unmarshal(b, &doc))
		require.NoError(t, published.Validate(doc))
		change(doc)
		require.Error(t, published.Validate(doc))
	}
}
