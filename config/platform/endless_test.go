package platform_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
)

// TestWhatAReleaseSaysEnds: its texts and the schema of its settings. What is here takes several
// times as long as what is waited for.
func TestWhatAReleaseSaysEnds(t *testing.T) {
	definitions := map[string]any{"a0": map[string]any{"type": "object"}}
	for i := range 23 {
		ref := map[string]string{"$ref": fmt.Sprintf("#/definitions/a%d", i)}
		definitions[fmt.Sprintf("a%d", i+1)] = map[string]any{"allOf": []any{ref, ref}}
	}
	doubling, err := json.Marshal(map[string]any{"definitions": definitions, "$ref": "#/definitions/a23"})
	require.NoError(t, err)
	for name, c := range map[string]struct{ field, text, says string }{
		"guidance": {"guidance", "{{range 1500000000}}{{end}}", "it takes longer than 5s"},
		"approval": {"approval", `{{define "a"}}{{range 1500000000}}{{end}}{{end}}{{template "a"}}`, "it takes longer than 5s"},
		"long":     {"guidance", "{{range 9223372036854775807}}" + strings.Repeat("a", 1000) + "{{end}}", "the text is longer than 65536 bytes"},
		"schema":   {"settings", string(doubling), "it takes longer than 5s"},
		"panic":    {"settings", `{"type": "object", "properties": {"a": {"type": "number", "multipleOf": 1e-999999999}}}`, "panic: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := loaded("components: [{name: a, kind: manifests, bundle: a, namespace: a}]\n"+c.field+": file\n", c.text)
			if err == nil {
				_, err = r.SettingsProblems(json.RawMessage(`{"a": 1}`))
			}
			require.ErrorContains(t, err, c.says)
			if c.field != "settings" {
				require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid})
			}
		})
	}
}

// loaded is a release with what is in platform.yaml, and in a file.
func loaded(fields, file string) (*platform.Release, error) {
	return platform.Load(fstest.MapFS{
		platform.File: {Data: []byte("apiVersion: slipway/v2\nname: a\nversion: 1.0.0\nnamespaces: [{name: a}]\n" + fields)},
		"file":        {Data: []byte(file)},
	})
}

// TestTheCheckOfAReleaseEnds, whatever is in platform.yaml.
func TestTheCheckOfAReleaseEnds(t *testing.T) {
	gate := "{cel: {object: v1/ConfigMap a/a, expression: '1==1" + strings.Repeat("&&1==1", 15000) + "'}}"
	_, err := loaded("components: [{name: a, kind: gate, ready: ["+strings.Repeat(gate+", ", 5)+gate+"]}]\n", "")
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid})
	require.ErrorContains(t, err, "it takes longer than 20s")
}
