package state_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/state"
)

func TestReportIsTheLastRunWithoutSecrets(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, state.Keep(root, "r1", map[string][]byte{"report.json": []byte("1")}))
	require.NoError(t, state.Keep(root, "r2", map[string][]byte{"report.json": []byte("2"), "hooks/backup.txt": []byte("said")}))
	require.NoError(t, state.KeepRuntime(root, []byte("a: b\n")))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "runs/r2/secrets"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "runs/r2/secrets/key"), []byte("k"), 0o600))

	out := filepath.Join(t.TempDir(), "out")
	run, err := state.Report(root, "", out)
	require.NoError(t, err)
	require.Equal(t, "r2", run)
	text, err := os.ReadFile(filepath.Join(out, "report.json"))
	require.NoError(t, err)
	require.Equal(t, "2", string(text))
	text, err = os.ReadFile(filepath.Join(out, "hooks/backup.txt"))
	require.NoError(t, err)
	require.Equal(t, "said", string(text))
	require.FileExists(t, filepath.Join(out, "state.yaml"))
	require.NoDirExists(t, filepath.Join(out, "secrets"))

	runs, err := state.Runs(root)
	require.NoError(t, err)
	require.Equal(t, []string{"r1", "r2"}, runs)
}

func TestKeepStaysInTheRunsDirectory(t *testing.T) {
	for _, name := range []string{"../../state.yaml", "/etc/passwd", ""} {
		require.ErrorContains(t, state.Keep(t.TempDir(), "r1", map[string][]byte{name: nil}), "no file of a run", name)
	}
}

func TestReportNamesARunThatIsNotThere(t *testing.T) {
	root := t.TempDir()
	_, err := state.Report(root, "", t.TempDir())
	require.ErrorIs(t, err, state.ErrNoRun)
	require.NoError(t, state.Keep(root, "r1", nil))
	_, err = state.Report(root, "r9", t.TempDir())
	require.ErrorIs(t, err, state.ErrNoRun)
	require.ErrorContains(t, err, "r9")
	for _, bad := range []string{"../..", "..", ".", ".tmp-1"} {
		_, err = state.Report(root, bad, t.TempDir())
		require.ErrorContains(t, err, "not a file name", bad)
	}
}

func TestPurgeKeepsTheRecordsOfRuns(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, state.Keep(root, "r1", map[string][]byte{"report.json": []byte("1")}))
	for _, f := range []string{"journal/a.json", "secrets/kubeconfig", "terraform/terraform.tfstate", "state.yaml"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, f)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, f), nil, 0o600))
	}
	require.NoError(t, state.Purge(root))
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, "runs", left[0].Name())
}
