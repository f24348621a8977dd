//go:build unix

package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/output"
)

// writes matches the help of a flag that names a file to write.
var writes = regexp.MustCompile(`file to write|to this file`)

// pipeAt makes a pipe with a name.
func pipeAt(t *testing.T) string {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	return pipe
}

// TestACommandPutsNoFileInThePlaceOfAnythingElse: each flag that names a file to write.
func TestACommandPutsNoFileInThePlaceOfAnythingElse(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(folder, "link")
	require.NoError(t, os.Symlink("nowhere", link))
	directory := filepath.Join(folder, "directory")
	require.NoError(t, os.Mkdir(directory, 0o700))
	var found []string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, is := f.Value.(*output.Path)
			name := c.CommandPath() + " --" + f.Name
			require.Equal(t, writes.MatchString(f.Usage), is, "%s: %s: a flag that names a file to write is one of package output", name, f.Usage)
			if !is {
				return
			}
			found = append(found, strings.TrimPrefix(name, "slipway "))
			for file, is := range map[string]string{link: "a link that leads nowhere", directory: "a directory"} {
				code, out, errs := slipway(append(strings.Fields(c.CommandPath())[1:], "--"+f.Name, file)...)
				require.Equal(t, 2, code, errs)
				require.Empty(t, out)
				require.Contains(t, errs, file+" is "+is+": give a regular file", name)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(tree(t))
	require.ElementsMatch(t, []string{
		"bundle push --out", "cluster --id", "configure --out", "kubeconfig --out",
		"plan --out", "reproduce --id", "save --out", "toolchain --id",
	}, found)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// TestAPipeThatACommandCannotWriteIsRefused before it is opened, which would wait for its other
// end.
func TestAPipeThatACommandCannotWriteIsRefused(t *testing.T) {
	kept(t)
	pipe := pipeAt(t)
	packed := strings.TrimSuffix(pipe, "pipe") + "p.tar.zst"
	require.NoError(t, os.Symlink(pipe, packed))
	for _, args := range [][]string{
		{"config", "migrate", "--config", pipe},
		{"bundle", "push", "DIR", "127.0.0.1:1/x", "--key", "none", "--out", pipe},
		{"report", "--out", pipe},
		{"platform", "init", pipe},
		{"save", "--out", packed},
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
