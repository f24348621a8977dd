package atomicfile_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// requireFiles checks the names and contents of the files in dir, none of them unfinished.
func requireFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	got := map[string]string{}
	for _, e := range entries {
		if e.IsDir() {
			got[e.Name()] = "a directory"
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		got[e.Name()] = string(data)
	}
	require.Equal(t, want, got)
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(file, []byte("what was there"), 0o644))
	require.NoError(t, atomicfile.Write(file, []byte("new"), 0o600))
	requireFiles(t, dir, map[string]string{"f": "new"})
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode(), "not that of the old one")

	require.ErrorIs(t, atomicfile.Write(filepath.Join(dir, "none", "f"), nil, 0o600), fs.ErrNotExist)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	require.Error(t, atomicfile.Write(filepath.Join(dir, "d"), []byte("new"), 0o600))
	requireFiles(t, dir, map[string]string{"f": "new", "d": "a directory"})
}

func TestOverwrite(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "f"), filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o640))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, atomicfile.Overwrite(link, []byte("new"), 0o600))
	requireFiles(t, dir, map[string]string{"f": "new"})
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, fs.ModeSymlink, info.Mode().Type())
	info, err = os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), info.Mode(), "that of the old one")
	require.NoError(t, atomicfile.Overwrite(filepath.Join(dir, "g"), []byte("new"), 0o600))
	requireFiles(t, dir, map[string]string{"f": "new", "g": "new"})
}

func TestDir(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, root.Close()) }()
	d := atomicfile.Dir{Root: root}
	require.NoError(t, d.Create(t.Context(), "f", []byte("1"), 0o600))
	require.ErrorIs(t, d.Create(t.Context(), "f", []byte("2"), 0o600), fs.ErrExist)
	requireFiles(t, dir, map[string]string{"f": "1"})
	require.NoError(t, d.Replace(t.Context(), "f", []byte("3"), 0o600))

	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	require.ErrorIs(t, d.Replace(ctx, "f", []byte("4"), 0o600), why)
	require.ErrorIs(t, d.Create(ctx, "g", []byte("4"), 0o600), why)
	requireFiles(t, dir, map[string]string{"f": "3"})

	require.Error(t, d.Replace(t.Context(), "../f", nil, 0o600), "it stays in the directory")
	require.NoError(t, d.MakeAll("a/b"))
	require.NoError(t, d.MakeAll("a/b"))
	require.Error(t, d.MakeAll("f/b"))
	require.NoError(t, d.Create(t.Context(), "a/b/f", []byte("5"), 0o600))
	requireFiles(t, filepath.Join(dir, "a/b"), map[string]string{"f": "5"})
	require.NoError(t, d.Remove("a/b/f"))
	require.NoError(t, d.Remove("a/b/f"))
	requireFiles(t, filepath.Join(dir, "a/b"), map[string]string{})
}
