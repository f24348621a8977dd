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
