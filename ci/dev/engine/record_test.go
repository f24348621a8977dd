package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sleeper is a process until the test ends, with an engine's command line or not.
func sleeper(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", "while :; do /bin/sleep 1; done"}, args...)...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd
}

func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "engine.pid")
	none, err := readRecord(path)
	require.NoError(t, err)
	require.False(t, none.alive())

	cmd := sleeper(t, insideCommand)
	r := record{PID: cmd.Process.Pid, Version: daggerVersion, Began: time.Now().UTC().Truncate(time.Second), CLI: "/c/dagger"}
	require.True(t, r.alive())
	require.NoError(t, r.write(path))
	read, err := readRecord(path)
	require.NoError(t, err)
	require.Equal(t, r, read)
	require.NoError(t, cmd.Process.Kill())
	require.Eventually(t, func() bool { return !r.alive() }, time.Minute, time.Millisecond, "not when it is collected only")

	require.False(t, record{PID: sleeper(t).Process.Pid}.alive(), "the pid given out again")
	require.NoError(t, os.WriteFile(path, []byte("1234\n"), 0o644))
	_, err = readRecord(path)
	require.ErrorContains(t, err, path)
}
