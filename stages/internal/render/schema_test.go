package render

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
)

// TestTheSchemaOfAChartFetchesNothing: nor does that of a chart that it depends on. What is
// left of a schema still holds.
func TestTheSchemaOfAChartFetchesNothing(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"required": ["secret"]}`))
	}))
	defer server.Close()
	local := filepath.Join(t.TempDir(), "other.json")
	require.NoError(t, os.WriteFile(local, []byte(`{"required": ["secret"]}`), 0o600))
	const sized = `"type": "object", "properties": {"size": {"type": "integer"}}`
	for _, schema := range []string{
		`{"$ref": "URL/a.json"}`,
		`{"$ref": "file://LOCAL"}`,
		`{"$ref": "urn:a:b"}`,
		`{"$schema": "URL/draft", ` + sized + `}`,
		`{"$schema": "file://LOCAL", ` + sized + `}`,
		`{"$id": "URL/base/", "allOf": [{"$ref": "a.json"}], ` + sized + `}`,
		`{"$schema": "http://json-schema.org/draft-04/schema#", "id": "URL/base/", "allOf": [{"$ref": "a.json"}]}`,
		`{"definitions": {"a": {"$ref": "URL/a.json#/definitions/b"}}, "properties": {"b": {"$ref": "#/definitions/a"}}}`,
		`{"$dynamicRef": "URL/a.json#x", ` + sized + `}`,
		`{"properties": {"list": {"items": {"anyOf": [{"$ref": "URL/a.json"}]}}}}`,
		`{"$defs": {"m": {"$schema": "URL/draft", "$id": "URL/x", "type": "object"}}, ` + sized + `}`,
	} {
		for _, at := range []string{"values.schema.json", "charts/sub/values.schema.json"} {
			dir := t.TempDir()
			for name, text := range map[string]string{
				"Chart.yaml":            "{apiVersion: v2, name: web, version: 1.0.0}",
				"charts/sub/Chart.yaml": "{apiVersion: v2, name: sub, version: 1.0.0}",
				"templates/a.yaml":      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
				at:                      strings.NewReplacer("URL", server.URL, "LOCAL", local).Replace(schema),
			} {
				file := filepath.Join(dir, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			}
			ch, err := LoadChart(t.Context(), os.DirFS(dir), ".")
			require.NoError(t, err, schema)
			good, bad := map[string]any{"size": 1}, map[string]any{"size": "big"}
			if at != "values.schema.json" {
				good, bad = map[string]any{"sub": good}, map[string]any{"sub": bad}
			}
			opts := ChartOptions{Release: "web", Namespace: "shop", Values: good, Kubernetes: &chartutil.DefaultCapabilities.KubeVersion}
			_, err = Chart(t.Context(), ch, opts)
			require.NoError(t, err, schema)
			if strings.Contains(schema, sized) {
				opts.Values = bad
				_, err = Chart(t.Context(), ch, opts)
				require.ErrorContains(t, err, "got string, want integer", schema)
			}
			require.Zero(t, asked.Load(), schema)
		}
	}
}
