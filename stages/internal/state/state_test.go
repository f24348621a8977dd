package state_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// open is the store of a state volume.
func open(t *testing.T, root string) *store.Store {
	t.Helper()
	s, err := state.Backend{Volume: root}.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestReportIsTheLastRunWithoutSecrets(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	require.NoError(t, state.Keep(t.Context(), s, "r1", map[string][]byte{"report.json": []byte("1")}))
	require.NoError(t, state.Keep(t.Context(), s, "r2", map[string][]byte{"report.json": []byte("2"), "hooks/backup.txt": []byte("\x1b]0;title\asa\u009b2J\u202eid"), "notes": []byte("\x1b[31mred")}))
	require.NoError(t, state.PutLatest(t.Context(), s, 2, "r2"))
	require.NoError(t, state.PutLatest(t.Context(), s, 1, "r1"), "late")
	require.NoError(t, state.PutRuntime(t.Context(), s, 1, contract.RuntimeState{}))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "runs/r2/secrets"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "runs/r2/secrets/key"), []byte("k"), 0o600))

	out := filepath.Join(t.TempDir(), "out")
	run, err := state.Report(t.Context(), s, "", out)
	require.NoError(t, err)
	require.Equal(t, "r2", run)
	text, err := os.ReadFile(filepath.Join(out, "report.json"))
	require.NoError(t, err)
	require.Equal(t, "2", string(text))
	text, err = os.ReadFile(filepath.Join(out, "hooks/backup.txt"))
	require.NoError(t, err)
	require.Equal(t, "said", string(text), "nothing in it does anything to a terminal")
	text, err = os.ReadFile(filepath.Join(out, "notes"))
	require.NoError(t, err)
	require.Equal(t, "red", string(text))
	require.FileExists(t, filepath.Join(out, "state.yaml"))
	require.NoDirExists(t, filepath.Join(out, "secrets"))

	runs, err := state.Runs(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, []string{"r1", "r2"}, runs)
}

func TestKeepStaysInTheRunsDirectory(t *testing.T) {
	for _, name := range []string{"../../state.yaml", "/etc/passwd", ""} {
		require.ErrorContains(t, state.Keep(t.Context(), open(t, t.TempDir()), "r1", map[string][]byte{name: nil}), "no file of a run", name)
	}
}

func TestReportNamesARunThatIsNotThere(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	_, err := state.Report(t.Context(), s, "", t.TempDir())
	require.ErrorIs(t, err, state.ErrNoRun)
	require.Error(t, state.PutLatest(t.Context(), s, 1, "../x"))
	_, err = state.Report(t.Context(), s, "r9", t.TempDir())
	require.ErrorIs(t, err, state.ErrNoRun)
	require.ErrorContains(t, err, "r9")
	for _, bad := range []string{"../..", "..", ".", ".tmp-1"} {
		_, err = state.Report(t.Context(), s, bad, t.TempDir())
		require.ErrorContains(t, err, "not a file name", bad)
	}
}

func TestPurgeKeepsTheRecordsOfRuns(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	require.NoError(t, state.Keep(t.Context(), s, "r1", map[string][]byte{"report.json": []byte("1")}))
	require.NoError(t, state.PutLatest(t.Context(), s, 1, "r1"))
	hold(t, s, "r1")
	p := state.Backend{Volume: root}
	ctx, w := work(t, p, s, "r1")
	key, err := state.PutUnsaved(t.Context(), s, "r0", []byte("{}"))
	require.NoError(t, err)
	_, err = state.PutUnsaved(t.Context(), s, "../r0", nil)
	require.Error(t, err)
	for _, f := range []string{"journal/a.json", "journal/a.b/000000000001.json", "secrets/kubeconfig", "terraform/terraform.tfstate", "terraform/.terraform/x", "state.yaml"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, f)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, f), nil, 0o600))
	}
	require.NoError(t, state.Purge(ctx, p, w))
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"latest", "lock", "runs", "unsaved"}, names)
	keys, err := state.Unsaved(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, []string{key}, keys)
}
