package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// elsewhere is a Git server in the namespace "elsewhere" that is no part of any platform,
// and a repository on it. Accounts other than its owner's may only read it.
type elsewhere struct {
	k         *kept
	work      string // clone of the repository, on this machine
	ca        string // PEM
	token     string // file: of the user "reader", over HTTPS
	key       string // file: a deploy key, over SSH
	knownHost string // lines of known_hosts
}

const (
	ownersURL = "https://owner:owner-of-it-all@localhost:3000/owner/platform.git" // inside of its Pod
	httpsURL  = "https://git.elsewhere.svc/owner/platform.git"
	sshURL    = "git@git.elsewhere.svc:owner/platform.git"
)

// startElsewhere starts it on a cluster with Argo CD, from the bundle's Gitea.
func startElsewhere(t *testing.T, k *kept) *elsewhere {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	cert, key := selfSigned(t, "git.elsewhere.svc", "localhost")
	k.kubectl(t, "create", "namespace", "elsewhere")
	k.kubectl(t, "create", "secret", "tls", "tls", "-n", "elsewhere", "--cert", file("cert", cert), "--key", file("key", key))
	manifest := strings.ReplaceAll(read(t, "testdata/elsewhere", "git.yaml"), "IMAGE", bundled(t, k.Bundle)["gitea"])
	k.kubectl(t, "apply", "-f", file("git.yaml", manifest))
	k.kubectl(t, "rollout", "status", "-n", "elsewhere", "deployment/git", "--timeout=3m")

	e := &elsewhere{k: k, work: filepath.Join(dir, "work"), ca: cert}
	e.token = file("token", e.sh(t, nil, `
api=https://localhost:3000/api/v1
call() { curl -fsSk -o /dev/null -u owner:owner-of-it-all -H 'Content-Type: application/json' "$@"; }
call -d '{"name": "platform", "private": true}' $api/user/repos
call -X PUT -d '{"permission": "read"}' $api/repos/owner/platform/collaborators/reader
ssh-keygen -q -t ed25519 -N '' -C '' -f /tmp/key
call -d "{\"title\": \"argocd\", \"read_only\": true, \"key\": \"$(cat /tmp/key.pub)\"}" $api/repos/owner/platform/keys
gitea admin user generate-access-token --username reader --token-name argocd --scopes read:repository --raw`))
	e.key = file("deploy-key", e.sh(t, nil, "cat /tmp/key"))
	e.knownHost = k.kubectl(t, "exec", "-n", "argocd", "deployment/argocd-repo-server", "--", "ssh-keyscan", "git.elsewhere.svc")
	require.NoError(t, os.Mkdir(e.work, 0o755))
	e.git(t, "init", "-q", "-b", "main")
	return e
}

// sh runs a script in its Pod.
func (e *elsewhere) sh(t *testing.T, stdin []byte, script string) string {
	t.Helper()
	cmd := e.k.kubectlCommand(t.Context(), "exec", "-i", "-n", "elsewhere", "deployment/git", "-c", "git", "--", "sh", "-ceu", script)
	cmd.Stdin = bytes.NewReader(stdin)
	r := finish(t, cmd)
	require.Zero(t, r.code, r.err)
	return r.out
}

// git runs git on the clone.
func (e *elsewhere) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", e.work, "-c", "user.name=owner", "-c", "user.email=owner@example.com"}, args...)...)
	r := finish(t, cmd)
	require.Zero(t, r.code, r.err)
	return r.out
}

// push commits everything in the clone, pushes all branches and tags as the owner, and
// returns the commit.
func (e *elsewhere) push(t *testing.T, message string, tags ...string) string {
	t.Helper()
	e.git(t, "add", "-A")
	e.git(t, "commit", "-q", "-m", message)
	for _, tag := range tags {
		e.git(t, "tag", tag)
	}
	e.sh(t, []byte(e.git(t, "bundle", "create", "-q", "-", "--all")), `
cat >/tmp/pushed.bundle
rm -rf /tmp/pushed
git clone -q --mirror /tmp/pushed.bundle /tmp/pushed
for what in --all --tags; do git -C /tmp/pushed -c http.sslVerify=false push -q $what `+ownersURL+`; done`)
	return strings.TrimSpace(e.git(t, "rev-parse", "HEAD"))
}

// refs are the branches and tags of the repository, as its server has them.
func (e *elsewhere) refs(t *testing.T) string {
	t.Helper()
	return e.sh(t, nil, "git -c http.sslVerify=false ls-remote --heads --tags "+ownersURL)
}

// byHTTPS is a configuration whose apps come from a branch or tag, read with a token, and
// with more.
func (e *elsewhere) byHTTPS(t *testing.T, revision, token, more string) *kept {
	t.Helper()
	return e.k.with(write(t, fmt.Sprintf("%s%sgit: {url: %q, revision: %q, path: deploy, username: reader, password: %q, ca: %q}\n",
		configured, more, httpsURL, revision, "file:"+token, e.ca)))
}

// bySSH is a configuration whose apps come from a commit, read with a deploy key.
func (e *elsewhere) bySSH(t *testing.T, revision string) *kept {
	t.Helper()
	return e.k.with(write(t, fmt.Sprintf("%sgit: {url: %q, revision: %q, path: deploy, sshKey: %q, knownHosts: %q}\n",
		configured, sshURL, revision, "file:"+e.key, e.knownHost)))
}

// follows asserts that the apps are those of the repository at a commit.
func (e *elsewhere) follows(t *testing.T, url, commit string) {
	t.Helper()
	seen := e.k.kubectl(t, "get", "applications", "-n", "argocd", "-o", `jsonpath={range .items[*]}{.metadata.name} {.spec.source.repoURL} {.status.sync.revision} {.status.health.status}{"\n"}{end}`)
	for _, app := range append([]string{"root"}, apps...) {
		require.Contains(t, seen, strings.Join([]string{app, url, commit, "Healthy"}, " ")+"\n")
	}
}

// appsFromElsewhere: Argo CD installs the apps from a private repository that is no part
// of the platform, by commit, tag and branch, over SSH and HTTPS, with accounts that can
// only read. Nothing is written to it.
func appsFromElsewhere(t *testing.T, k *kept) {
	e := startElsewhere(t, k)
	require.NoError(t, os.CopyFS(filepath.Join(e.work, "deploy"), os.DirFS(filepath.Join(root(t), "examples/platform/1.0.0/gitops"))))
	first := e.push(t, "one", "v1.0.0")
	note := filepath.Join(e.work, "deploy/apps/base/templates/note.yaml")
	const elsewhereNote = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {says: %s}\n"
	says := func() string {
		return k.kubectl(t, "get", "configmap", "-n", "platform", "note", "--ignore-not-found", "-o", "jsonpath={.data.says}")
	}
	require.NoError(t, os.WriteFile(note, fmt.Appendf(nil, elsewhereNote, "two"), 0o600))
	second := e.push(t, "two")
	refs := e.refs(t)
	require.Contains(t, refs, second+"\trefs/heads/main\n")

	t.Run("by commit, over SSH", func(t *testing.T) {
		r := e.bySSH(t, first).must(t, "install")
		require.Regexp(t, `(?m)^\s*preorchestrator/repository\s+succeeded`, r.out)
		require.NotRegexp(t, `(?m)^\s*(preorchestrator/git|orchestrator/publish)\s`, r.out, "nobody pushes")
		require.NotContains(t, r.out, "administrator of the git server")
		requireInstalled(t, r)
		e.follows(t, sshURL, first)
		require.Empty(t, says())
	})

	t.Run("by tag, over HTTPS", func(t *testing.T) {
		requireInstalled(t, e.byHTTPS(t, "v1.0.0", e.token, "").must(t, "install"))
		e.follows(t, httpsURL, first)
		require.Empty(t, says())
	})

	t.Run("a token that is wrong", func(t *testing.T) {
		r := e.byHTTPS(t, "main", write(t, "nobody's"), "advanced: {timeouts: {app: 20s}}\n").cli(t, "install")
		require.Equal(t, 4, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "read main of "+httpsURL)
		require.Regexp(t, `(?i)authenticat|authoriz`, r.err)
	})

	t.Run("by branch, over HTTPS, and what is pushed to it", func(t *testing.T) {
		requireInstalled(t, e.byHTTPS(t, "main", e.token, "").must(t, "install"))
		e.follows(t, httpsURL, second)
		require.Equal(t, "two", says())
		require.Equal(t, refs, e.refs(t), "nothing was written to the repository")

		require.NoError(t, os.WriteFile(note, fmt.Appendf(nil, elsewhereNote, "three"), 0o600))
		e.push(t, "three")
		k.kubectl(t, "annotate", "application", "-n", "argocd", "root", "--overwrite", "argocd.argoproj.io/refresh=hard")
		require.Eventually(t, func() bool { return says() == "three" }, 2*time.Minute, time.Second, "a branch is followed")
	})

	t.Run("the accounts cannot write", func(t *testing.T) {
		token, err := os.ReadFile(e.token)
		require.NoError(t, err)
		before := e.refs(t)
		out := e.sh(t, nil, `cd /tmp/pushed
refused() { ! "$@" >/tmp/said 2>&1 || echo "it may write"; cat /tmp/said; }
refused git -c http.sslVerify=false push https://reader:`+strings.TrimSpace(string(token))+`@localhost:3000/owner/platform.git main:refs/heads/more
export GIT_SSH_COMMAND="ssh -i /tmp/key -p 2222 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
git ls-remote ssh://git@localhost/owner/platform.git >/dev/null 2>&1 && echo "it may read"
refused git push ssh://git@localhost/owner/platform.git main:refs/heads/more`)
		require.Contains(t, out, "it may read")
		require.NotContains(t, out, "it may write")
		require.Equal(t, before, e.refs(t))
	})
}

// selfSigned is a certificate for hosts, which clients may trust, and its key, in PEM.
func selfSigned(t *testing.T, hosts ...string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: hosts[0]}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	block := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", secret)
}
