package report_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault/faulttest"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// FuzzRecord: the record of a run and the result of a step, as somebody may put them into the
// deployment's state, are shown or rejected, whatever is in them. Nothing is written outside the
// run's directory.
func FuzzRecord(f *testing.F) {
	const id = "20260102-030405-abcdef"
	known, err := filepath.Glob("testdata/*/" + report.RecordFile)
	require.NoError(f, err)
	require.NotEmpty(f, known)
	for _, file := range known {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text, []byte(`{"status":"succeeded"}`))
	}
	for _, text := range []string{
		"", "{", "null", "[]", `{"version":99}`, `{"version":1}`, `{"version":1,"outcome":"running","id":"../../x","steps":[{"stage":"a","step":"../b","status":"failed","fault":{"code":"X","exit":7}}]}`,
		`{"version":1,"started":"9999-12-31T23:59:59Z","finished":"0000-01-01T00:00:00Z","steps":[{"stage":"a","step":"b","needs":["a/b"],"status":"running"}]}`,
		`{"version":1,"outcome":"running","phases":[{"name":"x","steps":["a/b","a/b"]}],"links":[{"url":"javascript:alert(1)"}]}`,
	} {
		f.Add([]byte(text), []byte(`{"status":7}`))
	}
	f.Fuzz(func(t *testing.T, text, result []byte) {
		faulttest.Bounded(t, func() {
			r, err := report.Decode(text)
			if err != nil {
				require.ErrorContains(t, err, "decode run record: ") // whoever reads it says which
			} else {
				written, err := r.Encode()
				require.NoError(t, err)
				again, err := report.Decode(written)
				require.NoError(t, err)
				twice, err := again.Encode()
				require.NoError(t, err)
				require.Equal(t, string(written), string(twice))
				require.NoError(t, r.Summary(io.Discard))
			}

			parent := t.TempDir()
			dir := filepath.Join(parent, "run")
			step := filepath.Join(dir, "steps", "infrastructure.preflight")
			require.NoError(t, os.MkdirAll(step, 0o755))
			for name, data := range map[string][]byte{filepath.Join(dir, report.RecordFile): text, filepath.Join(step, "request.json"): result, filepath.Join(step, "result.json"): result, filepath.Join(step, "log.txt"): result} {
				require.NoError(t, os.WriteFile(name, data, 0o600))
			}
			if err := report.Render(dir, id, false); err != nil {
				return
			}
			require.NoError(t, filepath.WalkDir(parent, func(at string, d fs.DirEntry, err error) error {
				if name, _ := filepath.Rel(dir, at); err == nil && !d.IsDir() {
					require.True(t, filepath.IsLocal(name), name)
				}
				return err
			}))
			complete, err := os.ReadFile(filepath.Join(dir, report.RecordFile))
			require.NoError(t, err)
			_, err = report.Decode(complete)
			require.NoError(t, err, "what Render writes reads back")
		})
	})
}
