package incontainer

import (
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// TestRecordsThatCannotBeRead: whatever reads such a record names its key and says what to do. Once the
// key is moved away, the deployment can be used.
func TestRecordsThatCannotBeRead(t *testing.T) {
	const id = "20260102-030405-a1b2c3"
	torn := []string{"", "{", "[", `[]`, `{"version":`, "\x00\xff", `"text"`}
	for key, contents := range map[string][]string{
		"runs/" + id + "/report.json":            append(torn, "null", "{}", `{"version":99}`, `{"version":"1"}`),
		"runs/" + id + "/steps/a.b/result.json":  torn,
		"runs/" + id + "/steps/a.b/request.json": torn,
		"latest/000000000007":                    {"", "..", "../../x", ".hidden", "a/b", "20250101-010101-a1b2c3"},
		"deployment/000000000007.json":           append(torn, "null", "{}"),
		"cluster/000000000007.json":              append(torn, "null", "{}"),
	} {
		t.Run(key, func(t *testing.T) {
			for _, content := range contents {
				bucket := t.TempDir()
				backend := state.Backend{Volume: t.TempDir(), URL: "file://" + filepath.ToSlash(bucket)}
				s, err := backend.Open(t.Context())
				require.NoError(t, err)
				on := &State{backend: backend, store: s, errw: io.Discard}
				r := &report.Run{ID: id, Workflow: "install", Deployment: "blue", Started: time.Now(), Outcome: report.Running}
				record, err := r.Encode()
				require.NoError(t, err)
				require.NoError(t, state.Keep(t.Context(), s, id, map[string][]byte{report.RecordFile: record, "steps/a.b/log.txt": []byte("x")}))
				require.NoError(t, state.PutLatest(t.Context(), s, 1, id))
				require.NoError(t, s.Put(t.Context(), key, []byte(content)))

				damaged := func(err error) {
					t.Helper()
					require.ErrorIs(t, err, &fault.Fault{Code: store.CodeDamaged}, content)
					require.ErrorContains(t, err, "read "+key[:7], content)
					f, _ := errors.AsType[*fault.Fault](err)
					require.NotEmpty(t, f.Fix)
				}
				_, err = on.stored(t.Context())
				damaged(err)
				require.ErrorContains(t, err, s.Location())
				if key[:4] == "runs" {
					_, err := on.report(t.Context(), filepath.Join(t.TempDir(), "out"), "")
					damaged(err)
				}
				require.NoError(t, s.Delete(t.Context(), key))
				_, err = on.stored(t.Context())
				require.NoError(t, err, content)
				_, lease, err := lock.New(s, lock.Options{}).Acquire(t.Context(), lock.Holder{Run: "r1"})
				require.NoError(t, err)
				require.NoError(t, lease.Release(t.Context()))
			}
		})
	}
}
