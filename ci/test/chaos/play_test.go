package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// played plays rounds with a stand-in for Slipway, and returns what the program has printed.
func played(t *testing.T, flaw string, code int, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "bin", "slipway")))
	state, err := os.MkdirTemp(inMemory(t), "slipway-chaos-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(state)) })
	t.Setenv(standInState, state)
	t.Setenv(standInFlaw, flaw)
	var out, errs strings.Builder
	require.Equal(t, code, run(append([]string{"--bundle", dir, "--name", "n", "--seed", "7", "--logs", filepath.Join(dir, "logs")}, args...), &out, &errs), "%s%s", &out, &errs)
	t.Logf("%s%s", &out, &errs)
	return out.String() + errs.String()
}

// inMemory is a directory where a sync takes no time, if this machine has one: who writes records
// syncs each of them.
func inMemory(t *testing.T) string {
	t.Helper()
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return t.TempDir()
}

// TestPlay: rounds in which an install is killed and stopped.
func TestPlay(t *testing.T) {
	out := played(t, "", 0, "--kinds", "kill-conductor,stop-conductor", "--pause", "500ms", "--rounds", "3")
	require.Contains(t, out, "KIND            EQUAL  FAILED\nkill-conductor  2      0\nstop-conductor  1      0\n3 of 3 equal\n")
	require.Regexp(t, `2 stop-conductor +at +\d\.\ds .* the conductor was stopped for \d+s, \d+ processes, it succeeded; 4 steps reused, 4 attempts of 2 runs; \d+s: equal\n`, out)
}

// TestPlay_findsFlaws: of an install that does something wrong no round passes.
func TestPlay_findsFlaws(t *testing.T) {
	for flaw, says := range map[string]string{
		"forgets": "the records are not as they must be: missing: an attempt at infrastructure/storage by ",
		"repeats": "infrastructure/terraform had succeeded and is succeeded the second time",
	} {
		t.Run(flaw, func(t *testing.T) {
			out := played(t, flaw, 1, "--kinds", "stop-conductor", "--pause", "100ms", "--rounds", "1")
			require.Contains(t, out, ": failed: ")
			require.Contains(t, out, says)
			require.Contains(t, out, "0 of 1 equal\n")
		})
	}
}
