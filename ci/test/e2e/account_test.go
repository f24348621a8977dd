package e2e

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// guarded is a registry in this process with TLS, a certificate of an authority of its own,
// and one account.
type guarded struct {
	address   string // host:port
	authority string // file with its certificate

	mu        sync.Mutex
	passwords []string
	status    int      // answered to everything; 0: what is asked for
	read      []string // paths
}

const puller = "puller"

func startGuarded(t *testing.T) *guarded {
	t.Helper()
	host := bridgeAddress(t)
	g := &guarded{}
	issued := issue(t, net.ParseIP(host))
	g.authority = issued.authority
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(t.TempDir())))
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, TLS: &tls.Config{Certificates: []tls.Certificate{issued.certificate(t)}}, Config: &http.Server{
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			g.mu.Lock()
			status, in := g.status, user == puller && slices.Contains(g.passwords, password)
			if in && r.Method == http.MethodGet {
				g.read = append(g.read, r.URL.Path)
			}
			g.mu.Unlock()
			switch {
			case status != 0:
				w.WriteHeader(status)
			case !in:
				w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
				w.WriteHeader(http.StatusUnauthorized)
			default:
				handler.ServeHTTP(w, r)
			}
		}),
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	g.address = listener.Addr().String()
	return g
}

// loggedIn is docker's configuration after a login with a password; the result is its folder.
func (g *guarded) loggedIn(t *testing.T, password string) string {
	t.Helper()
	return loggedIn(t, g.address, password)
}

// loggedIn is docker's configuration after a login at a registry; the result is its folder.
func loggedIn(t *testing.T, address, password string) string {
	t.Helper()
	dir := t.TempDir()
	auth := base64.StdEncoding.EncodeToString([]byte(puller + ":" + password))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, address, auth)), 0o600))
	return dir
}

// password is one like no other.
func password() string { return "c4nary-" + strings.ToLower(rand.Text()) }

// accepts changes the passwords of the account.
func (g *guarded) accepts(passwords ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passwords = passwords
}

// answers has everything answered with a status; 0: as it is asked for.
func (g *guarded) answers(status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status = status
}

// pulls are the paths that were read with the account since the last call.
func (g *guarded) pulls() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	read := g.read
	g.read = nil
	return read
}

// search is a pod that looks on the disk of a node for what the first text matches, and names
// the files that have it; the second one is its image. Layers may go while it looks.
const search = `
apiVersion: v1
kind: Pod
metadata: {name: search, namespace: default}
spec:
  restartPolicy: Never
  volumes: [{name: node, hostPath: {path: /, type: Directory}}]
  containers:
    - name: search
      image: %[2]s
      command: [/bin/sh, -c, 'for dir in var/lib/slipway-node run/slipway-node slipway etc; do busybox test -d "/node/$dir" || echo "there is no $dir"; busybox grep -rlsE "%[1]s" "/node/$dir" 2>&1 | busybox grep -v ": No such file or directory$"; done; echo searched']
      volumeMounts: [{name: node, mountPath: /node, readOnly: true}]
`

// TestRegistryWithAccounts installs from a registry with TLS, an authority of its own and
// accounts: the engine and the cluster's node pull with the account of docker login.
func TestRegistryWithAccounts(t *testing.T) {
	takesLong(t)
	inTurn(t)
	g := startGuarded(t)
	d := open(t, "e2e-accounts")
	bundle := d.Bundle
	to := g.address + "/team/slipway"
	lockFile := filepath.Join(t.TempDir(), "slipway.lock.json")
	first, second := password(), password()
	g.accepts(first)
	right, wrong, later := g.loggedIn(t, first), g.loggedIn(t, "wr0ng-password"), g.loggedIn(t, second)
	got := collector(t)
	as := func(d deployment, docker string, more ...string) *kept {
		d.Env = append(slices.Concat(more, got.env), "DOCKER_CONFIG="+docker)
		return &kept{deployment: d, config: write(t, configured)}
	}
	push := func(docker string, more ...string) result {
		cmd := as(d, docker, more...).CLI(t.Context(), "bundle")
		cmd.Args = []string{cmd.Args[0], "bundle", "push", bundle, to, "--out", lockFile}
		return finish(t, cmd)
	}
	trusts := "SSL_CERT_FILE=" + g.authority

	t.Run("a push says what it lacks", func(t *testing.T) {
		for code, r := range map[string]result{"REG-013": push(right), "REG-001": push(wrong, trusts)} {
			require.Equal(t, 3, r.code, r.err)
			require.Contains(t, r.err, code)
		}
		r := push(right, trusts)
		require.Zero(t, r.code, r.err)
	})
	require.FileExists(t, lockFile)
	d.Lock, d.Dir = lockFile, t.TempDir()

	const until = "infrastructure/storage"
	refused := func(t *testing.T, k *kept, code string, says ...string) {
		t.Helper()
		r := k.cli(t, "install")
		require.Equal(t, 3, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
		for _, text := range append(says, code) {
			require.Contains(t, r.err, text)
		}
		require.NotContains(t, r.err, "infrastructure/", "no step started")
		require.NotContains(t, r.out+r.err, first)
	}
	t.Run("an engine that does not trust the authority", func(t *testing.T) {
		refused(t, as(d, right), "REG-013", "the image toolchain from "+to, "make engine-stop engine")
	})

	engine := trusting(t, g.authority)
	on := "_EXPERIMENTAL_DAGGER_RUNNER_HOST=" + engine.address
	k := as(d, right, on)
	module := func(t *testing.T, flags ...string) result {
		t.Helper()
		with := k.deployment
		with.Flags = flags
		return with.call(t, "install", "--config", k.config, "--until", until)
	}
	t.Run("a login that is wrong or missing", func(t *testing.T) {
		refused(t, as(d, wrong, on), "REG-001", "docker login "+g.address)
		refused(t, as(d, t.TempDir(), on), "REG-001", "docker login "+g.address)
	})
	t.Run("the module has to be given the node's account", func(t *testing.T) {
		r := module(t)
		require.Equal(t, 3, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "REG-001")
		require.Contains(t, r.err, "--registry-auth file:")
	})
	t.Run("a registry that is asked too often", func(t *testing.T) {
		g.answers(http.StatusTooManyRequests)
		defer g.answers(0)
		refused(t, k, "REG-014")
	})

	t.Run("install", func(t *testing.T) {
		g.pulls()
		k.must(t, "install", "--until", until, "--keep-cluster", "--unpublished")
		pulled, digests := g.pulls(), workloads(t, lockFile)
		for _, name := range []string{"pause", "coredns", "local-path-provisioner", "busybox"} {
			require.Contains(t, pulled, "/v2/team/slipway/"+name+"/manifests/"+digests[name], "the node pulled %s", name)
		}
	})
	t.Run("the account is on no disk of the node", func(t *testing.T) {
		encoded := base64.StdEncoding.EncodeToString([]byte(puller + ":" + first))
		pattern := "[" + first[:1] + "]" + first[1:] + "|[" + encoded[:1] + "]" + encoded[1:] // which does not match itself
		out := k.shell(t, "kubectl apply -f - <<'END'\n"+fmt.Sprintf(search, pattern, "slipway.local/busybox@"+workloads(t, lockFile)["busybox"])+"END\n"+
			"kubectl wait pod/search --for=jsonpath={.status.phase}=Succeeded --timeout=5m >&2; echo; kubectl logs search; kubectl delete pod search >&2")
		_, found, _ := strings.Cut(out, "\n\n")
		require.Equal(t, "searched", strings.TrimSpace(found))
	})
	t.Run("another password is for the next start", func(t *testing.T) {
		g.accepts(first, second)
		other := as(d, later, on)
		other.config = k.config
		r := other.cli(t, "status", "--live")
		require.Equal(t, 3, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "CTR-007")
		require.Contains(t, r.err, "another account of the registry")
		other.must(t, "cluster", "--stop")
		g.accepts(second)
		k = other
		k.must(t, "install", "--until", until)
	})
	t.Run("the module with the account", func(t *testing.T) {
		r := module(t, "--registry-auth", "file:"+filepath.Join(later, "config.json"))
		require.Zero(t, r.code, slipway.Tail(r.err))
	})
	t.Run("no password was printed", func(t *testing.T) {
		for _, secret := range []string{first, second} {
			require.NotContains(t, k.printed.String(), secret)
		}
		report := filepath.Join(t.TempDir(), "report")
		k.must(t, "report", "--out", report)
		require.NoError(t, filepath.WalkDir(report, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, secret := range []string{first, second} {
				require.NotContains(t, string(text), secret, path)
			}
			return err
		}))
	})
	t.Run("destroy", func(t *testing.T) { k.must(t, "destroy", "--yes") })

	t.Run("a cluster that is there", func(t *testing.T) { onTheirCluster(t, g, k, on) })
	t.Run("no password is in what a collector of telemetry gets", func(t *testing.T) {
		secrets := map[string][]string{}
		for what, secret := range map[string]string{"first password": first, "second password": second} {
			secrets[what] = append(forms(secret), base64.StdEncoding.EncodeToString([]byte(puller+":"+secret)))
		}
		got.requireNone(t, secrets)
	})
}

// onTheirCluster installs to an existing cluster, whose nodes have no account:
// pods have one in their namespace.
func onTheirCluster(t *testing.T, g *guarded, k *kept, engine string) {
	t.Helper()
	own := open(t, "e2e-acc-host")
	own.Env = []string{engine}
	host := &kept{deployment: own, config: write(t, configured+"local: {apiPort: 8444, bind: 0.0.0.0}\n")}
	host.must(t, "install", "--keep-cluster", "--until", "infrastructure/local-addons")
	t.Cleanup(func() {
		_ = finish(t, own.CLI(context.Background(), "cluster", "--stop"))
		_ = finish(t, own.CLI(context.Background(), "destroy", "--yes", "--ignore-not-found"))
	})
	host.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	host.must(t, "kubeconfig", "--out", host.kubeconfig)
	theirs := host.kubeconfigAt(t, strings.Split(g.address, ":")[0])

	d := k.deployment
	d.Name = "e2e-acc-theirs"
	config := write(t, fmt.Sprintf(configured+"provider: existing\nexisting: {kubeconfig: \"file:%s\"}\n", theirs))
	k = &kept{deployment: d, config: config, kubeconfig: host.kubeconfig}
	const until = "infrastructure/storage,preorchestrator/namespaces"
	secrets := func(t *testing.T) map[string]string {
		t.Helper()
		var list struct {
			Items []struct {
				Metadata struct{ Name, Namespace string }
				Data     map[string]string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(host.kubectl(t, "get", "secrets", "-A", "--field-selector", "type=kubernetes.io/dockerconfigjson", "-o", "json")), &list))
		out := map[string]string{}
		for _, s := range list.Items {
			require.Equal(t, "slipway-registry", s.Metadata.Name)
			out[s.Metadata.Namespace] = s.Data[".dockerconfigjson"]
		}
		return out
	}
	k.must(t, "install", "--until", until) // pods of the check of storage have images of the registry
	before := secrets(t)
	require.Greater(t, len(before), 2)
	require.NotContains(t, before, "slipway-checks-"+d.Name, "the check is over")
	for namespace := range before {
		require.Equal(t, "slipway-registry", host.kubectl(t, "get", "serviceaccount", "default", "-n", namespace, "-o", "jsonpath={.imagePullSecrets[*].name}"), namespace)
	}
	require.Regexp(t, `(?m)^\s*preorchestrator/namespaces\s+reused`, k.must(t, "install", "--until", until).out)

	last := password()
	g.accepts(last)
	k.Env = append(k.Env, "DOCKER_CONFIG="+g.loggedIn(t, last))
	require.NotRegexp(t, `(?m)^\s*preorchestrator/namespaces\s+reused`, k.must(t, "install", "--until", until).out, "with another password")
	for namespace, text := range secrets(t) {
		require.NotEqual(t, before[namespace], text, namespace)
	}
	k.must(t, "destroy", "--yes")
	require.Empty(t, secrets(t))
	require.NotContains(t, k.printed.String(), last)
}
