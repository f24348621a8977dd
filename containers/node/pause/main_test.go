package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPauseEndsWhenTold builds the program and sends it SIGTERM.
func TestPauseEndsWhenTold(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pause")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	require.NoError(t, cmd.Start())
	cancel()
	// A signal before the handler is there ends the program as well, by itself.
	if err := cmd.Wait(); !errors.Is(err, context.Canceled) {
		require.ErrorContains(t, err, "signal: interrupt")
	}
}
