package e2e

import (
	"context"
	"crypto/tls"
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

// extra is a component that may fail, and does.
const extra = `
  - {name: extra, kind: job, path: jobs/extra.yaml, namespace: shop, optional: true, images: [busybox]}
  - {name: more, kind: gate, after: [extra], ready: [{endpoint: "shop/web:80"}]}
`

const failing = `apiVersion: batch/v1
kind: Job
metadata: {name: extra}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      securityContext: {runAsNonRoot: true, runAsUser: 65534, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: extra
          image: busybox
          command: [sh, -c, "echo nobody needs this; exit 1"]
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// TestReleaseFromGit installs the platform release that `slipway platform init` makes,
// with a component that may fail and a password that the user gives, from a Git server, by
// version. The engine fetches it, and refuses one that is another than the configuration
// says.
func TestReleaseFromGit(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-release")
	finish(t, d.CLI(t.Context(), "cluster", "--stop")) // whatever an earlier run of the tests left
	finish(t, d.CLI(t.Context(), "destroy", "--yes", "--ignore-not-found"))
	t.Cleanup(func() { _ = finish(t, d.CLI(context.Background(), "cluster", "--stop")) })
	work := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", work, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	release := filepath.Join(work, "releases/shop")
	program := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(d.Bundle, "bin/slipway"), args...)
		cmd.Env = append(os.Environ(), "SLIPWAY_CONFIG_DIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	require.NoError(t, os.Mkdir(filepath.Dir(release), 0o755))
	program("platform", "init", release)
	require.Contains(t, program("validate", "--platform", release, "--bundle", d.Bundle), "valid: ")
	text := read(t, release, "platform.yaml")
	const components = "\ncomponents:\n"
	require.Equal(t, 1, strings.Count(text, components))
	text = strings.Replace(text, components, components+strings.TrimPrefix(extra, "\n"), 1)
	require.NoError(t, os.WriteFile(filepath.Join(release, "platform.yaml"), []byte(text), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(release, "jobs/extra.yaml"), []byte(failing), 0o600))
	git("init", "-q", "-b", "main")
	git("config", "uploadpack.allowAnySHA1InWant", "true")
	git("add", "-A")
	git("commit", "-q", "-m", "one")
	git("tag", "v1.2.0")
	was, first := digest(t, release), git("rev-parse", "HEAD")

	url := serveGit(t, work, "0") + "//releases/shop"
	const password = "given, not generated"
	given := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(given, []byte(password+"\n"), 0o600))
	at := func(ref string) *kept {
		return &kept{deployment: d, config: write(t, configured+fmt.Sprintf("local: {apiPort: 6743}\nplatform: {release: %q, secrets: {webPassword: %q}}\n", url+"@"+ref, "file:"+given))}
	}
	k := at("v1.2.0#" + was)
	r := k.must(t, "install", "--keep-cluster")
	t.Run("what was installed can be found again", func(t *testing.T) {
		require.Equal(t, was, k.record(t).Platform.Digest)
		require.Equal(t, first, k.record(t).Platform.Commit)
	})

	t.Run("what may fail is a warning, and the rest is installed", func(t *testing.T) {
		require.Regexp(t, `(?m)^\s*orchestrator/extra\s+warned\s`, r.out)
		require.Regexp(t, `(?m)^\s*orchestrator/more\s+skipped`, r.out, "it comes after that")
		require.Regexp(t, `(?m)^\s*orchestrator/sign-in\s+succeeded\s`, r.out)
		require.Contains(t, r.out+r.err, "nobody needs this", "why it failed")
		require.Equal(t, "succeeded", k.outcome(t))
	})

	t.Run("the guidance is shown at the end, and kept in the report", func(t *testing.T) {
		const says = "shop 0.1.0 is installed as e2e-release."
		require.Contains(t, r.out, says)
		dir := filepath.Join(t.TempDir(), "report")
		k.must(t, "report", "--out", dir)
		for _, file := range []string{"report.json", "report.html", "summary.txt"} {
			require.Contains(t, read(t, dir, file), says, file)
		}
		require.NotContains(t, read(t, dir, "report.json"), password)
	})

	t.Run("the password that the user gives is used", func(t *testing.T) {
		out := k.must(t, "toolchain", "--", "sh", "-ceu", `password=$(kubectl get secret -n shop web -o 'jsonpath={.data.password}' | base64 -d)
echo "$password"
for i in $(seq 60); do curl -fsS -u "admin:$password" http://cluster/private/ && break; sleep 1; done
curl -sS -o /dev/null -w '%{http_code}\n' -u admin:another http://cluster/private/`).out
		require.Equal(t, password+"\n<p>Signed in to shop.</p>\n401\n", out)
	})

	moved := 0
	move := func(t *testing.T) string {
		t.Helper()
		moved++
		require.NoError(t, os.WriteFile(filepath.Join(release, "more.txt"), []byte(strings.Repeat("more", moved)), 0o600))
		git("add", "-A")
		git("commit", "-q", "-m", "more")
		git("tag", "-f", "v1.2.0")
		return git("rev-parse", "HEAD")
	}
	move(t)
	t.Run("a version that has changed meanwhile is refused", func(t *testing.T) {
		r := at("v1.2.0#"+was).cli(t, "install")
		require.Equal(t, 3, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "PLT-015")
		require.Contains(t, r.err, "its digest is "+digest(t, release)+", not "+was)
	})

	t.Run("the same is there by its commit", func(t *testing.T) {
		k := at(first + "#" + was)
		r := k.must(t, "install")
		require.Regexp(t, `(?m)^\s*orchestrator/web\s+reused`, r.out)
		require.Equal(t, was, k.record(t).Platform.Digest)
	})

	t.Run("a version that is not there", func(t *testing.T) {
		r := at("v9.9.9#"+was).cli(t, "install")
		require.Equal(t, 3, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "PLT-014")
		require.Contains(t, r.err, "v9.9.9")
	})
	k.must(t, "destroy", "--yes")

	t.Run("a version without a digest", func(t *testing.T) { followsAVersion(t, work, release, "v1.2.0", at("v1.2.0"), move) })
}

// serveGit serves the repository in a directory to the engine, on a port or, as "0", any, and
// returns its URL.
func serveGit(t *testing.T, work, port string) string {
	t.Helper()
	return gitServer(t, work, port, nil, "")
}

// gitServer does that by HTTPS, if it is to have a certificate, and for those who have a token as
// their password, if there is one.
func gitServer(t *testing.T, work, port string, of *issued, token string) string {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(bridgeAddress(t), port))
	require.NoError(t, err)
	url := fmt.Sprintf("http://%s/%s/.git", listener.Addr(), filepath.Base(work))
	if of != nil {
		url = strings.Replace(url, "http:", "https:", 1)
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{of.certificate(t)}})
	}
	path, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	require.NoError(t, err)
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(work), "GIT_HTTP_EXPORT_ALL=1"},
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != token {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
	return url
}

// followsAVersion: a release without a digest is, in each run, what its version leads to by
// then. Plain HTTP, which anybody on the way can change, is not taken for one. move gives the
// version another release, whose commit it returns.
func followsAVersion(t *testing.T, work, release, version string, plain *kept, move func(t *testing.T) string) {
	r := plain.cli(t, "install")
	require.Equal(t, 2, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "CFG-001")
	require.Contains(t, r.err, "got a release by plain HTTP, which anybody on the way can change, want https, or the release's digest")

	issued := issue(t, net.ParseIP(bridgeAddress(t)))
	url := gitServer(t, work, "0", &issued, "")
	d := open(t, "e2e-unpinned")
	d.Env = []string{"_EXPERIMENTAL_DAGGER_RUNNER_HOST=" + trusting(t, issued.authority).address}
	t.Cleanup(func() { _ = finish(t, d.CLI(context.Background(), "destroy", "--yes", "--ignore-not-found")) })
	k := &kept{deployment: d, config: write(t, configured+fmt.Sprintf("platform: {release: %q}\n", url+"//releases/shop@"+version))}
	for range 2 {
		commit := move(t)
		k.must(t, "install", "--until", "infrastructure/preflight")
		of := k.record(t).Platform
		require.Equal(t, commit, of.Commit)
		require.Equal(t, digest(t, release), of.Digest)
	}
}
