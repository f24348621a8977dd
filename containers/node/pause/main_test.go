package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPauseEndsWhenTold builds the program and sends it SIGTERM. As the first process of a
// pod it must handle the signal itself, so one that the signal kills does not count: unless
// it had too little time to get so far, which the next one has.
func TestPauseEndsWhenTold(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pause")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	err = os.ErrInvalid
	for begun := 50 * time.Millisecond; err != nil && begun < 5*time.Second; begun *= 2 {
		cmd := exec.CommandContext(t.Context(), program)
		require.NoError(t, cmd.Start())
		time.Sleep(begun)
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		err = cmd.Wait()
	}
	require.NoError(t, err)
}
