package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAMatrix: what it leaves is removed.
func TestAMatrix(t *testing.T) {
	var did []string
	var results string
	m := &matrix{name: "bench-mx", parallel: 1, program: program{log: io.Discard, remove: []string{"--ignore-not-found"}, command: func(ctx context.Context, command, name string, args ...string) *exec.Cmd {
		did = append(did, strings.Join(append([]string{command, name}, args...), " "))
		if command == "upgrade-matrix" {
			results = args[len(args)-1]
			require.NoError(t, os.Mkdir(filepath.Join(results, "bench-mx-1a2b3c"), 0o755))
		}
		return exec.CommandContext(ctx, "true")
	}}}
	require.NoError(t, m.Remove(t.Context(), "x"))
	require.NoError(t, m.Install(t.Context(), "x", cells))
	require.NoError(t, m.Remove(t.Context(), "x"))
	require.NoDirExists(t, results)
	require.Equal(t, []string{
		"destroy bench-mx --ignore-not-found",
		"upgrade-matrix bench-mx --from 1.0.0 --to 1.1.0 --style graceful,in-place --parallel 1 --out " + results,
		"destroy bench-mx --ignore-not-found", "destroy bench-mx-1a2b3c --ignore-not-found",
	}, did)
}
