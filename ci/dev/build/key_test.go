package build_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build"
)

func TestKeyTellsInputsApart(t *testing.T) {
	in := func() *build.Inputs { return build.NewInputs("thing") }
	keys := map[string]build.Key{
		"nothing":             in().Key(),
		"another name":        build.NewInputs("other").Key(),
		"a string":            in().String("a", "b").Key(),
		"boundary moved":      in().String("ab", "").Key(),
		"label and value":     in().String("b", "a").Key(),
		"two strings":         in().String("a", "b").String("a", "b").Key(),
		"a list of one":       in().Strings("a", []string{"b c"}).Key(),
		"a list of two":       in().Strings("a", []string{"b", "c"}).Key(),
		"lists split earlier": in().Strings("a", nil).Strings("a", []string{"b", "c"}).Key(),
	}
	seen := map[string]string{}
	for what, k := range keys {
		require.Len(t, k.Digest, 64)
		require.Empty(t, seen[k.Digest], "%s has the key of another", what)
		seen[k.Digest] = what
	}
	require.Equal(t, in().String("a", "b").Key(), in().String("a", "b").Key())
}

func TestTreeDependsOnContentOnly(t *testing.T) {
	tree := func(change func(dir string)) build.Key {
		dir := t.TempDir()
		for name, text := range map[string]string{"main.go": "package main", "sub/x.go": "package sub", "sub/x_test.go": "package sub", ".git/HEAD": "ref"} {
			path := filepath.Join(dir, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		if change != nil {
			change(dir)
		}
		in := build.NewInputs("tree")
		require.NoError(t, in.Tree("t", dir, func(path string) bool { return filepath.Base(path) != "x_test.go" }))
		return in.Key()
	}
	base := tree(nil)
	put := func(name, text string) func(string) {
		return func(dir string) { require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) }
	}
	require.Equal(t, base, tree(nil), "another folder")
	require.Equal(t, base, tree(put(".git/HEAD", "other")), "hidden folders")
	require.Equal(t, base, tree(put("sub/x_test.go", "other")), "files that are not kept")
	require.Equal(t, base, tree(func(dir string) {
		old := time.Unix(1, 0)
		require.NoError(t, os.Chtimes(filepath.Join(dir, "main.go"), old, old))
	}), "times")

	require.NotEqual(t, base, tree(put("main.go", "package other")), "content")
	require.NotEqual(t, base, tree(put("more.go", "")), "another file")
	require.NotEqual(t, base, tree(func(dir string) {
		require.NoError(t, os.Rename(filepath.Join(dir, "main.go"), filepath.Join(dir, "renamed.go")))
	}), "a name")
	require.NotEqual(t, base, tree(func(dir string) { require.NoError(t, os.Chmod(filepath.Join(dir, "main.go"), 0o755)) }), "executable")
	require.NotEqual(t, base, tree(func(dir string) {
		require.NoError(t, os.Symlink("main.go", filepath.Join(dir, "link.go")))
	}), "a link")
}

func TestMissingInputIsAnError(t *testing.T) {
	in := build.NewInputs("thing")
	require.ErrorIs(t, in.File("f", filepath.Join(t.TempDir(), "absent")), os.ErrNotExist)
	require.ErrorIs(t, in.Tree("t", filepath.Join(t.TempDir(), "absent"), nil), os.ErrNotExist)
}
