package incontainer_test

import (
	"encoding/base64"
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
	place := state.Place{Volume: root}
	s, err := place.Open(t.Context())
	require.NoError(t, err)
	repo, err := backup.Open(t.Context(), place, s)
	require.NoError(t, err)
	blob, err := repo.Pack(t.Context(), backup.ReleaseKey("b1"), fstest.MapFS{"platform.yaml": {Data: []byte("name: shop\n"), Mode: 0o644}})
	require.NoError(t, err)
	require.NoError(t, repo.Put(t.Context(), contract.Backup{ID: "b1", Reason: contract.ForUpgrade, From: "1.0.0", To: "1.1.0", Config: []byte(`{"a":1}`), Release: &blob}))
	require.NoError(t, repo.Put(t.Context(), contract.Backup{ID: "b2", Reason: contract.ForRollback}))
	do := func(what func(*incontainer.State) error) error {
		return incontainer.WithState(t.Context(), root, nil, io.Discard, what)
	}
	read := func() []byte {
		t.Helper()
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		return text
	}

	require.NoError(t, do(func(s *incontainer.State) error { return s.Backups(t.Context(), out, "") }))
	var all []contract.BackupSummary
	require.NoError(t, json.Unmarshal(read(), &all))
	require.Equal(t, []string{"b1", "b2"}, []string{all[0].ID, all[1].ID})
	require.NotContains(t, string(read()), `"a":1`)
	require.NoError(t, do(func(s *incontainer.State) error { return s.Backups(t.Context(), out, "b1") }))
	var b contract.Backup
	require.NoError(t, json.Unmarshal(read(), &b))
	require.JSONEq(t, `{"a":1}`, string(b.Config))

	require.NoError(t, do(func(s *incontainer.State) error { return s.Archive(t.Context(), out, "b1") }))
	archive, err := base64.StdEncoding.DecodeString(string(read()))
	require.NoError(t, err, "the engine hands on nothing but text")
	files, err := bounded.Unpack(archive)
	require.NoError(t, err)
	text, err := fs.ReadFile(files, "platform.yaml")
	require.NoError(t, err)
	require.Equal(t, "name: shop\n", string(text))

	require.NoError(t, do(func(s *incontainer.State) error { return s.Installed(t.Context(), out) }))
	require.Equal(t, "null", string(read()), "nothing was installed to its end")
	require.NoError(t, repo.KeepInstalled(t.Context(), 1, nil, contract.Installed{Platform: "shop", Version: "1.0.0", Digest: "sha256:aa", Config: []byte(`{"a":2}`)},
		fstest.MapFS{"platform.yaml": {Data: []byte("name: shop\n"), Mode: 0o644}}))
	require.NoError(t, do(func(s *incontainer.State) error { return s.Installed(t.Context(), out) }))
	var kept contract.InstalledRelease
	require.NoError(t, json.Unmarshal(read(), &kept))
	require.Equal(t, "1.0.0", kept.Version)
	require.JSONEq(t, `{"a":2}`, string(kept.Config))
	files, err = bounded.Unpack(kept.Archive)
	require.NoError(t, err)
	_, err = fs.Stat(files, "platform.yaml")
	require.NoError(t, err)

	err = do(func(s *incontainer.State) error { return s.Archive(t.Context(), out, "b2") })
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeNoBackup})
	require.ErrorContains(t, err, "backup b2 holds data only")
	require.ErrorIs(t, do(func(s *incontainer.State) error { return s.Backups(t.Context(), out, "b3") }), &fault.Fault{Code: contract.CodeNoBackup})
}
