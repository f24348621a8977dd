package tree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/ci/test/tree"
)

// TestTheTreeIsForWhoeverHasTheToken, as the section of the configuration says.
func TestTheTreeIsForWhoeverHasTheToken(t *testing.T) {
	release := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(release, "gitops/apps"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(release, "gitops/apps/a.yaml"), []byte("a: 1\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(release, "platform.yaml"), nil, 0o644))
	s, err := tree.Serve(t.Context(), t.TempDir(), release, "127.0.0.1")
	require.NoError(t, err)

	var file struct {
		Git struct{ URL, Revision, Path, Username, Password, CA string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(s.Section()), &file))
	from := file.Git
	token, err := os.ReadFile(strings.TrimPrefix(from.Password, "file:"))
	require.NoError(t, err)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(ca, []byte(from.CA), 0o644))
	clone := func(url, ca string) (dir string, err error) {
		dir = filepath.Join(t.TempDir(), "clone")
		cmd := exec.CommandContext(t.Context(), "git", "-c", "http.proxy=", "-c", "credential.helper=", "clone", "-q", "-b", from.Revision, url, dir)
		cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_SSL_CAINFO="+ca)
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		return dir, err
	}
	as := func(password string) string {
		return strings.Replace(from.URL, "https://", "https://"+from.Username+":"+password+"@", 1)
	}
	dir, err := clone(as(string(token)), ca)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, from.Path, "apps/a.yaml"))
	require.NoError(t, err)
	require.Equal(t, "a: 1\n", string(text))
	require.NoFileExists(t, filepath.Join(dir, "platform.yaml"), "the tree alone")

	_, err = clone(as("wrong"), ca)
	require.Error(t, err)
	_, err = clone(from.URL, ca)
	require.Error(t, err)
	_, err = clone(as(string(token)), "/dev/null")
	require.Error(t, err, "nobody else vouches for it")
	require.NoError(t, s.Close())
	_, err = clone(as(string(token)), ca)
	require.Error(t, err)
}

func TestAReleaseWithoutATree(t *testing.T) {
	_, err := tree.Serve(t.Context(), t.TempDir(), t.TempDir(), "127.0.0.1")
	require.ErrorContains(t, err, "copy the tree")
}
