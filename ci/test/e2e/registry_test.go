package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/containers/lock"
)

// TestInstallFromRegistry pushes the bundle to a registry and installs a cluster from there,
// without the bundle.
func TestInstallFromRegistry(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-registry")
	bundle := d.Bundle
	r := startRegistry(t)
	to := r.loopback + "/team/slipway"
	lockFile := filepath.Join(t.TempDir(), "slipway.lock.json")

	push := func() string {
		out, err := exec.CommandContext(t.Context(), filepath.Join(bundle, "bin/slipway"),
			"bundle", "push", bundle, to, "--out", lockFile).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	require.Contains(t, push(), "toolchain")
	puts := r.count(http.MethodPut, "")
	require.Regexp(t, `toolchain .*there already`, push())
	require.Equal(t, puts, r.count(http.MethodPut, ""), "a second push uploads nothing")

	finish(t, d.CLI(t.Context(), "destroy", "--yes", "--ignore-not-found")) // whatever an earlier run of the tests left

	// No call gets the bundle: it runs where no .env names it.
	d.Bundle, d.Dir, d.Lock = "", t.TempDir(), lockFile
	config := write(t, fmt.Sprintf(configured+"advanced: {registry: %q}\nlocal: {registryMirror: \"http://%s/team/slipway\"}\n", to, r.bridge))

	t.Run("an image that is missing is named before anything starts", func(t *testing.T) {
		incomplete := d
		incomplete.Lock = changed(t, lockFile, "guestbook")
		got := incomplete.call(t, "install", "--config", config)
		require.Equal(t, 3, got.code, slipway.Tail(got.err))
		require.Contains(t, got.err, "REG-007")
		require.Contains(t, got.err, "the image guestbook from "+to)
		require.NotContains(t, got.err, "infrastructure/", "no step started")
	})

	t.Run("an image that is not the one of the lock is named", func(t *testing.T) {
		forged := d
		forged.Lock = changed(t, lockFile, "redis")
		r.forge(workloads(t, forged.Lock)["redis"], workloads(t, lockFile)["redis"])
		got := forged.call(t, "install", "--config", config)
		require.Equal(t, 3, got.code, slipway.Tail(got.err))
		require.Contains(t, got.err, "REG-008")
		require.Contains(t, got.err, "the image redis from "+to)
	})

	t.Run("a registry that does not answer, or wants a login, is named", func(t *testing.T) {
		locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		defer locked.Close()
		gone := httptest.NewServer(http.NotFoundHandler())
		gone.Close()
		for url, says := range map[string]string{locked.URL: "REG-001", gone.URL: "REG-002"} {
			registry := strings.TrimPrefix(url, "http://") + "/slipway"
			tool := d
			tool.Bundle = bundle
			cmd := tool.CLI(t.Context(), "install", "--registry", registry)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Equal(t, 3, cmd.ProcessState.ExitCode(), string(out))
			require.Contains(t, string(out), says)
			require.Contains(t, string(out), "the image toolchain from "+registry)
		}
	})

	t.Run("a node that cannot reach the registry is told so", func(t *testing.T) {
		tool := d
		tool.Bundle = bundle
		got := finish(t, tool.CLI(t.Context(), "install"))
		require.Equal(t, 2, got.code, slipway.Tail(got.err))
		require.Contains(t, got.err, "registryMirror")
	})

	// A whole platform comes from a registry in TestExistingCluster.
	t.Run("install", func(t *testing.T) {
		before := time.Now()
		d.ok(t, "install", "--until", "infrastructure/storage", "--config", config)
		pulled, digests := r.pulled(before), workloads(t, lockFile)
		for _, name := range []string{"pause", "coredns", "local-path-provisioner", "busybox"} {
			require.Contains(t, pulled, "/v2/team/slipway/"+name+"/manifests/"+digests[name], "the node pulled %s", name)
		}
	})

	t.Run("destroy", func(t *testing.T) {
		out := d.ok(t, "destroy", "--config", config).out
		require.Regexp(t, `infrastructure/inventory\s+succeeded`, out)
	})
}

// workloads are the digests of the images in a lock file, by name.
func workloads(t *testing.T, file string) map[string]string {
	t.Helper()
	l, _, err := lock.Read(file)
	require.NoError(t, err)
	out := map[string]string{}
	for _, pushed := range l.Bundles {
		for _, i := range pushed.Index.Images {
			out[i.Name] = pushed.Digest(i)
		}
	}
	require.NotEmpty(t, out)
	return out
}

// changed is a copy of a lock in which an image has a digest that no registry
// has ever had.
func changed(t *testing.T, file, image string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	digest := workloads(t, file)[image]
	require.NotEmpty(t, digest)
	other := make([]byte, 32)
	_, err = rand.Read(other)
	require.NoError(t, err)
	return write(t, strings.ReplaceAll(string(text), digest, "sha256:"+hex.EncodeToString(other)))
}

// testRegistry is a registry in this process, on loopback for the engine and the
// push, and on the engine's bridge for the node.
type testRegistry struct {
	loopback, bridge string // host:port

	mu     sync.Mutex
	seen   []request
	forged map[string]string // digest that is asked for → the one that is answered
}

type request struct {
	at                  time.Time
	method, path, local string // local is the address that was asked
}

func startRegistry(t *testing.T) *testRegistry {
	t.Helper()
	gateway := bridgeAddress(t)
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)),
		registry.WithBlobHandler(registry.NewDiskBlobHandler(t.TempDir())))
	r := &testRegistry{forged: map[string]string{}}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		local, _ := q.Context().Value(http.LocalAddrContextKey).(net.Addr)
		r.mu.Lock()
		r.seen = append(r.seen, request{time.Now(), q.Method, q.URL.Path, local.String()})
		for asked, answered := range r.forged {
			q.URL.Path = strings.ReplaceAll(q.URL.Path, asked, answered)
		}
		r.mu.Unlock()
		handler.ServeHTTP(w, q)
	})}
	var all sync.WaitGroup
	for host, address := range map[string]*string{"127.0.0.1": &r.loopback, gateway: &r.bridge} {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		require.NoError(t, err)
		*address = listener.Addr().String()
		all.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("serve on %s: %v", host, err)
			}
		})
	}
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		all.Wait()
	})
	return r
}

// push puts a bundle into the registry, and returns lock, the lock file that it writes.
func (r *testRegistry) push(t *testing.T, bundle, lock string) string {
	t.Helper()
	push := finish(t, exec.CommandContext(t.Context(), filepath.Join(bundle, "bin", "slipway"), "bundle", "push", bundle, r.loopback+"/team/slipway", "--out", lock))
	require.Zero(t, push.code, slipway.Tail(push.err))
	return lock
}

// bridgeAddress is this machine's address on the engine's network: that of the
// bridge that `make engine` makes, which is there once a container has run. A bridge that runs
// comes first: an engine that was killed leaves its bridge.
func bridgeAddress(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	require.NoError(t, err)
	var idle string
	for _, i := range all {
		addresses, _ := i.Addrs() // it may have gone meanwhile
		for _, a := range addresses {
			n, ok := a.(*net.IPNet)
			switch {
			case !ok || n.IP.To4() == nil || !strings.HasPrefix(i.Name, "slip"):
			case i.Flags&net.FlagRunning != 0:
				return n.IP.String()
			default:
				idle = n.IP.String()
			}
		}
	}
	if idle == "" {
		t.Skip("needs the engine of make engine on this machine")
	}
	return idle
}

// forge answers with another manifest than the one that is asked for.
func (r *testRegistry) forge(asked, answered string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forged[asked] = answered
}

// count is how many requests of a method had text in their path.
func (r *testRegistry) count(method, text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, q := range r.seen {
		if q.method == method && strings.Contains(q.path, text) {
			n++
		}
	}
	return n
}

// pulled are the paths that were read through the bridge since then.
func (r *testRegistry) pulled(since time.Time) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var paths []string
	for _, q := range r.seen {
		if q.local == r.bridge && q.method == http.MethodGet && q.at.After(since) {
			paths = append(paths, q.path)
		}
	}
	return paths
}
