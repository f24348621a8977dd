package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestReleaseFromGit: the engine fetches the platform release from a Git server, by
// version, and refuses one that is another than the configuration says.
func TestReleaseFromGit(t *testing.T) {
	t.Parallel()
	d := open(t, "e2e-release")
	work := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", work, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	release := filepath.Join(work, "releases/one")
	require.NoError(t, os.CopyFS(release, os.DirFS(filepath.Join(root(t), "examples/platform/1.0.0"))))
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-q", "-m", "one")
	git("tag", "v1.2.0")
	was := digest(t, release)

	listener, err := net.Listen("tcp", net.JoinHostPort(bridgeAddress(t), "0"))
	require.NoError(t, err)
	path, err := exec.Command("git", "--exec-path").Output()
	require.NoError(t, err)
	server := &http.Server{Handler: &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(work), "GIT_HTTP_EXPORT_ALL=1"},
	}}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
	url := fmt.Sprintf("http://%s/%s/.git//releases/one", listener.Addr(), filepath.Base(work))
	install := func(ref string) (*kept, result) {
		t.Helper()
		k := &kept{deployment: d, config: write(t, configured+"platform: {release: \""+url+"@"+ref+"\"}\n")}
		return k, k.cli(t, "install", "--to", "infrastructure/preflight")
	}
	k, r := install("v1.2.0#" + was)
	require.Zero(t, r.code, slipway.Tail(r.err))
	require.Equal(t, was, k.record(t).Platform.Digest, "what was installed can be found again")

	require.NoError(t, os.WriteFile(filepath.Join(release, "more.txt"), []byte("more"), 0o600))
	git("add", "-A")
	git("commit", "-q", "-m", "two")
	git("tag", "-f", "v1.2.0")
	_, r = install("v1.2.0#" + was)
	require.Equal(t, 3, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "PLT-015")
	require.Contains(t, r.err, "its digest is "+digest(t, release)+", not "+was)

	_, r = install("v9.9.9#" + was)
	require.Equal(t, 3, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "PLT-014")
	require.Contains(t, r.err, "v9.9.9")
	k.must(t, "destroy", "--ignore-not-found")
}
