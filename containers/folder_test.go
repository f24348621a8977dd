package containers

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNoFolderWhileACommandRuns: a program that is killed meanwhile leaves none behind.
func TestNoFolderWhileACommandRuns(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	names := func() (out []string) {
		entries, err := os.ReadDir(tmp)
		require.NoError(t, err)
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	ran, exports := 0, 0
	client := engine(t, func(fields []string) (any, string) {
		switch fields[len(fields)-1] {
		case "exitCode", "sync":
			ran++
			if found := names(); len(found) > 0 {
				t.Error("while a command runs there is", found)
			}
			return map[string]any{"exitCode": 0, "sync": "x"}[fields[len(fields)-1]], ""
		case "export":
			exports++
			found := names()
			if len(found) != 1 {
				t.Error("for an export there is", found)
				return "x", ""
			}
			for name, text := range map[string]string{"result": "it is done", "code": "3\n", "out": "printed", "err": ""} {
				if err := os.WriteFile(filepath.Join(tmp, found[0], name), []byte(text), 0o600); err != nil {
					t.Error(err)
				}
			}
		}
		return "x", ""
	})
	out, err := Open(client, "dev", &Images{Toolchain: client.Container()}, Access{}).Exec(t.Context(), Exec{Args: []string{"slipway"}, Result: "/result.json"})
	require.NoError(t, err)
	require.Equal(t, "it is done", string(out.Result))
	code, err := Command(t.Context(), client.Container(), []string{"true"}, io.Discard, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 3, code)
	require.Equal(t, 2, ran)
	require.Equal(t, 2, exports)
	require.Empty(t, names())
}

// TestFoldersThatAreLeft go with the next one, but for those that something may still use.
func TestFoldersThatAreLeft(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	elsewhere := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(elsewhere, "kept"), nil, 0o600))
	stays := []string{"slipway-result-new", "slipway-data-1", "result-1"}
	for _, name := range append([]string{"slipway-result-1"}, stays...) {
		require.NoError(t, os.Mkdir(filepath.Join(tmp, name), 0o700))
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(tmp, name, "link")))
		if name != "slipway-result-new" {
			long := time.Now().Add(-folderLimit - time.Minute)
			require.NoError(t, os.Chtimes(filepath.Join(tmp, name), long, long))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(tmp, "slipway-result-file"), nil, 0o600))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(tmp, "slipway-result-link")))
	require.NoError(t, inFolder(func(string) error { return nil }))
	entries, err := os.ReadDir(tmp)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.ElementsMatch(t, append(stays, "slipway-result-file", "slipway-result-link"), names)
	require.FileExists(t, filepath.Join(elsewhere, "kept"))
}
