package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/history"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestCopyState: what of a state comes out of its container, and when it was written.
func TestCopyState(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	now := time.Now().Truncate(time.Second)
	want := map[string]bool{
		"lock/000000000001.json": true, "journal/a.b/000000000001.json": true, "latest/000000000001": true,
		"state/000000000001.yaml": true, "terraform/000000000001.tfstate": true, "runs/r2/steps/a.b/attempt-1.json": true,
		"runs/r2/steps/a.b/log.txt": false, "runs/r1/steps/a.b/attempt-1.json": false, "secrets/kubeconfig": false, "cluster/000000000001.json": false,
	}
	for name := range want {
		file := filepath.Join(from, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(name), 0o600))
		at := now
		if strings.HasPrefix(name, "runs/r1/") {
			at = now.Add(-time.Hour)
		}
		require.NoError(t, os.Chtimes(file, at, at))
	}
	text, err := exec.Command("sh", "-ceu", strings.Replace(copyState, contract.StateDir, from, 1), "sh", strconv.FormatInt(now.Add(-time.Minute).Unix(), 10)).Output()
	require.NoError(t, err)
	require.NoError(t, unpack(t.Context(), text, to))
	got := map[string]bool{}
	require.NoError(t, filepath.WalkDir(to, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(to, file)
		require.NoError(t, err)
		got[name] = true
		info, err := d.Info()
		require.NoError(t, err)
		require.True(t, info.ModTime().Equal(now), name)
		return nil
	}))
	for name, comes := range want {
		require.Equal(t, comes, got[name], name)
	}
	require.Error(t, unpack(t.Context(), []byte("bm90aGluZw=="), to))
}

// TestTimeless: a clock that was wrong hides nothing but the order.
func TestTimeless(t *testing.T) {
	events := []history.Event{
		{Op: history.Take, Call: 100, Return: 100, Generation: 1, Run: "r1"}, {Op: history.Take, Call: 50, Return: 50, Generation: 2, Run: "r2"},
		{Op: history.Begin, Call: 100, Return: 100, Generation: 1, Run: "r1", Step: "s", N: 1}, {Op: history.End, Call: 110, Return: 110, Generation: 1, Run: "r1", Step: "s", N: 1},
		{Op: history.Found, Call: 110, Return: 110, Run: "r1", Step: "s", N: 1}, {Op: history.Last, Call: 110, Return: 110, Run: "r1", Step: "s", N: 1},
	}
	require.NotEmpty(t, history.Check(events))
	timeless(events)
	require.Empty(t, history.Check(events))
	require.NotEmpty(t, history.Check(events[:4]), "an end that is not found")
}
