package incontainer_test

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/incontainer"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// TestABackupLeavesTheContainer: the list, one backup as a whole, and its release.
func TestABackupLeavesTheContainer(t *testing.T) {
	root, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	backend := state.Backend{Volume: root}
	s, err := backend.Open(t.Context())
	require.NoError(t, err)
	repo, err := backup.Open(t.Context(), backend, s)
	require.NoError(t, err)
	blob, err := repo.Pack(t.Context(), backup.ReleaseKey("b1"), fstest.MapFS{"platform.yaml": {Data: []byte("name: shop\n"), Mode: 0o644}})
	require.NoError(t, err)
	require.NoError(t, repo.Put(t.Context(), contract.Backup{ID: "b1", Reason: contract.ForUpgrade, From: "1.0.0", To: "1.1.0", Config: []byte(`{"a":1}`), Release: &blob}))
	require.NoError(t, repo.Put(t.Context(), contract.Backup{ID: "b2", Reason: contract.ForRollback}))
	answer := func(action, request string, into any) error {
		t.Helper()
		err := incontainer.WithState(t.Context(), root, nil, io.Discard, func(s *incontainer.State) error {
			return s.Answer(t.Context(), []string{action, request}, out, nil)
		})
		if err != nil {
			return err
		}
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		return json.Unmarshal(text, into)
	}

	var all []contract.BackupSummary
	require.NoError(t, answer("backups", "{}", &all))
	require.Equal(t, []string{"b1", "b2"}, []string{all[0].ID, all[1].ID})
	var b contract.BackupRelease
	require.NoError(t, answer("backup", `{"id":"b1"}`, &b))
	require.JSONEq(t, `{"a":1}`, string(b.Config))
	files, err := bounded.Unpack(b.Archive)
	require.NoError(t, err)
	text, err := fs.ReadFile(files, "platform.yaml")
	require.NoError(t, err)
	require.Equal(t, "name: shop\n", string(text))

	err = answer("backup", `{"id":"b2"}`, &b)
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeNoBackup})
	require.ErrorContains(t, err, "backup b2 holds data only")
	require.ErrorIs(t, answer("backup", `{"id":"b3"}`, &b), &fault.Fault{Code: contract.CodeNoBackup})
	require.ErrorContains(t, answer("nothing", "{}", nil), "there is no action \"nothing\"")
}
