package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAMatrix: its cells are told by when they began, and what it leaves is removed.
func TestAMatrix(t *testing.T) {
	var did []string
	var results string
	m := &matrix{name: "bench-mx", parallel: 1, program: program{log: io.Discard, remove: []string{"--ignore-not-found"}, command: func(ctx context.Context, command, name string, args ...string) *exec.Cmd {
		did = append(did, strings.Join(append([]string{command, name}, args...), " "))
		if command == "upgrade-matrix" {
			results = args[len(args)-1]
			require.NoError(t, os.Mkdir(filepath.Join(results, "bench-mx-1a2b3c"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(results, "matrix.json"), []byte(`{"cells": [
				{"began": "2026-01-01T00:01:00Z", "phases": [{"nanoseconds": 5000000000}]},
				{"began": "2026-01-01T00:00:00Z", "phases": [{"nanoseconds": 7000000000}, {"nanoseconds": 2000000000}]}]}`), 0o600))
		}
		return exec.CommandContext(ctx, "true")
	}}}
	require.NoError(t, m.Remove(t.Context(), "x"))
	require.NoError(t, m.Install(t.Context(), "x", cells))
	require.Equal(t, []part{{cell1, 9 * time.Second}, {cell2, 5 * time.Second}}, m.Parts())
	require.NoError(t, m.Remove(t.Context(), "x"))
	require.NoDirExists(t, results)
	require.Equal(t, []string{
		"destroy bench-mx --ignore-not-found",
		"upgrade-matrix bench-mx --from 1.0.0 --to 1.1.0 --style graceful,in-place --parallel 1 --out " + results,
		"destroy bench-mx --ignore-not-found", "destroy bench-mx-1a2b3c --ignore-not-found",
	}, did)

	var all samples
	c := contestant{title: titleMatrix, name: "x", kinds: []kind{cells}, installer: m}
	require.NoError(t, c.measure(t.Context(), &all, io.Discard))
	require.InDelta(t, 5, all.median(titleMatrix, cell2), 1e-9)
	m.parallel = 2
	require.NoError(t, m.Install(t.Context(), "x", cells))
	require.Empty(t, m.Parts(), "cells that run at the same time slow each other down")
	require.NoError(t, m.Remove(t.Context(), "x"))

	_, err := cellTimes([]byte(`{"cells": []}`))
	require.ErrorContains(t, err, "0 cells")
}
