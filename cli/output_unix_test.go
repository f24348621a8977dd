//go:build unix

package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// pipeAt makes a pipe with a name.
func pipeAt(t *testing.T) string {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	return pipe
}

// TestAPipeThatACommandCannotWriteIsRefused before it is opened, which would wait for its other
// end.
func TestAPipeThatACommandCannotWriteIsRefused(t *testing.T) {
	kept(t)
	pipe := pipeAt(t)
	packed := strings.TrimSuffix(pipe, "pipe") + "p.tar.zst"
	require.NoError(t, os.Symlink(pipe, packed))
	for _, args := range [][]string{
		{"report", "--out", pipe},
		{"platform", "init", pipe},
		{"save", "--verify", packed},
		{"configure", "--out", filepath.Join(filepath.Dir(pipe), "f"), "--file", packed},
	} {
		code, out, errs := slipway(args...)
		require.Equal(t, 2, code, "%v: %s", args, errs)
		require.Empty(t, out)
		require.Contains(t, errs, filepath.Dir(pipe), args)
	}
	info, err := os.Lstat(pipe)
	require.NoError(t, err)
	require.Equal(t, fs.ModeNamedPipe, info.Mode().Type())
	entries, err := os.ReadDir(filepath.Dir(pipe))
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// TestConfigureWritesToAPipe, which it does not read before, and nothing but the configuration.
func TestConfigureWritesToAPipe(t *testing.T) {
	kept(t)
	pipe := pipeAt(t)
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		text, err := os.ReadFile(pipe)
		done <- read{text, err}
	}()
	code, out, errs := slipway("configure", "--set", "global.name=blue", "--set", "global.scale=50", "--out", pipe)
	require.Zero(t, code, errs)
	require.Empty(t, out)
	got := <-done
	require.NoError(t, got.err)
	code, want, errs := slipway("configure", "--set", "global.name=blue", "--set", "global.scale=50", "--out", "-")
	require.Zero(t, code, errs)
	require.Equal(t, want, string(got.text))
}

// TestAConfigurationBehindALinkIsMigratedWhereItIs, and its original is kept there.
func TestAConfigurationBehindALinkIsMigratedWhereItIs(t *testing.T) {
	kept(t)
	folder := t.TempDir()
	file, link := filepath.Join(folder, "slipway.yaml"), filepath.Join(t.TempDir(), "link")
	old := "apiVersion: slipway.sh/v1alpha1\nprovider: local\nglobal:\n  name: blue\n  domain: slipway.test\n  scale: 50\n"
	require.NoError(t, os.WriteFile(file, []byte(old), 0o600))
	require.NoError(t, os.Symlink(file, link))
	code, _, errs := slipway("config", "migrate", "--config", link)
	require.Zero(t, code, errs)
	original, err := os.ReadFile(file + ".orig")
	require.NoError(t, err)
	require.Equal(t, old, string(original))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "slipway.sh/v1\n")
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, fs.ModeSymlink, info.Mode().Type())
}
