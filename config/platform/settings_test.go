package platform_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
)

// TestTheSchemaOfSettingsReadsNothingElse: neither a server nor a file of this machine, nor another file of
// the release. What it names is in the error.
func TestTheSchemaOfSettingsReadsNothingElse(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"type":"object"}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "schema.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"type":"object"}`), 0o600))
	for _, at := range []string{server.URL + "/s.json", "file://" + filepath.ToSlash(file), file, "other.json", "./other.json", "../other.json", "ftp://127.0.0.1/s"} {
		for _, schema := range []string{
			`{"$ref": "AT"}`, `{"$dynamicRef": "AT"}`, `{"$recursiveRef": "AT", "$schema": "https://json-schema.org/draft/2019-09/schema"}`, `{"$schema": "AT"}`,
			`{"$id": "AT", "$ref": "more.json"}`, `{"allOf": [{"$ref": "AT"}]}`, `{"properties": {"a": {"$ref": "AT#/$defs/b"}}}`, `{"$defs": {"a": {"$id": "AT", "$ref": "x"}}, "$ref": "#/$defs/a"}`,
		} {
			files := tree(good + "settings: settings.schema.json\n")
			files["settings.schema.json"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(schema, "AT", at))}
			files["other.json"] = &fstest.MapFile{Data: []byte(`{"type":"object"}`)}
			_, err := platform.Load(files)
			require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid}, "%s %s", schema, at)
			require.ErrorContains(t, err, "settings", schema)
		}
	}
	require.Zero(t, asked.Load(), "requests")
}
