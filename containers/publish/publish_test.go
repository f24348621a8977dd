package publish

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/registries"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

func TestPushedTwiceUploadsOnce(t *testing.T) {
	f := newFixture(t)
	to, uploads := server(t, nil)
	var finished, known []string
	push := func() *lock.File {
		finished, known = nil, nil
		l, err := Push(t.Context(), Options{Dir: f.dir, Anchor: wanted(), To: to, Lock: f.lock, Observe: func(p registries.Progress) {
			if p.Finished {
				require.Equal(t, 5, p.Of)
				require.Equal(t, p.Total, p.Done)
				finished = append(finished, p.Image)
			}
			if p.There {
				known = append(known, p.Image)
			}
		}})
		require.NoError(t, err)
		return l
	}
	first := push()
	require.Equal(t, []string{"gitea", "node", "redis", "toolchain", "manifests"}, finished)
	require.Empty(t, known)
	before := uploads.Load()
	second := push()
	require.Equal(t, finished, known)
	require.Equal(t, before, uploads.Load(), "the second push uploads nothing")
	require.Equal(t, first, second, "layers that are made here have the same digests")

	// The lock survives its file, and says where everything is.
	text, err := second.Marshal()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "slipway.lock.json")
	require.NoError(t, os.WriteFile(path, text, 0o755))
	read, _, err := lock.Read(path)
	require.NoError(t, err)
	require.Equal(t, second, read)
	require.Equal(t, to, read.Location)
	b, err := bundle.Read(f.dir)
	require.NoError(t, err)
	there := read.Bundles[b.Platform]
	require.Equal(t, b.Index, there.Index)
	for _, i := range b.Index.Images { // but for the toolchain byte for byte the bundle's
		_, err := remote.Get(mustRef(t, to+"/"+i.Name+"@"+there.Digest(i)))
		require.NoError(t, err)
	}
}

func TestToolsAndManifestsAreInTheirImages(t *testing.T) {
	f := newFixture(t)
	to, _ := server(t, nil)
	l, err := Push(t.Context(), Options{Dir: f.dir, Anchor: wanted(), To: to, Lock: f.lock})
	require.NoError(t, err)
	files := func(name, digest string) map[string]string {
		image, err := remote.Image(mustRef(t, to+"/"+name+"@"+digest))
		require.NoError(t, err)
		out := map[string]string{}
		for r := tar.NewReader(mutate.Extract(image)); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return out
			}
			require.NoError(t, err)
			content, err := io.ReadAll(r)
			require.NoError(t, err)
			out[h.Name] = string(content)
		}
	}
	of := l.Bundles["linux/amd64"]
	require.Equal(t, "#!/bin/helm", files(lock.Toolchain, of.Toolchain)["usr/local/bin/helm"])
	require.Equal(t, map[string]string{"argocd/install.yaml": "kind: List\n"}, trim(files(lock.Manifests, of.Manifests)))
}

func trim(in map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range in {
		out[strings.Trim(k, "/")] = v
	}
	return out
}

func TestAnInterruptedPushGoesOn(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	var interrupted atomic.Bool
	to, uploads := server(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !interrupted.Load() && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/node/manifests/") {
			interrupted.Store(true)
			cancel()
			http.Error(w, "too late", http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	_, err := Push(ctx, Options{Dir: f.dir, Anchor: wanted(), To: to, Lock: f.lock})
	require.ErrorIs(t, err, context.Canceled)
	before := uploads.Load()
	_, err = Push(t.Context(), Options{Dir: f.dir, Anchor: wanted(), To: to, Lock: f.lock})
	require.NoError(t, err)
	// Left are node's manifest, redis (2 layers, config, manifest), toolchain
	// (2 layers, 2 tools, config, manifest) and the manifests (layer, config, manifest).
	require.Equal(t, int32(1+4+6+3), uploads.Load()-before)
}

func TestFaults(t *testing.T) {
	f := newFixture(t)
	refuse := func(status int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet && r.URL.Path == "/v2/" {
				return false
			}
			w.WriteHeader(status)
			return true
		}
	}
	unauthorised, _ := server(t, refuse(http.StatusUnauthorized))
	forbidden, _ := server(t, refuse(http.StatusForbidden))
	full, _ := server(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/redis/manifests/") {
			return false
		}
		w.WriteHeader(http.StatusInsufficientStorage)
		return true
	})
	gone, _, _ := strings.Cut(unreachable(t), "/")
	for what, c := range map[string]struct {
		to   string
		code fault.Code
		says []string
	}{
		"unauthorised": {unauthorised, imageref.CodeLogin, []string{unauthorised}},
		"forbidden":    {forbidden, imageref.CodeLogin, []string{forbidden}},
		"unreachable":  {gone + "/slipway", imageref.CodeUnreachable, []string{gone}},
		"full":         {full, imageref.CodePull, []string{"the image redis", full}},
		"no place":     {"https://example.com/slipway", imageref.CodeNowhere, nil},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := Push(t.Context(), Options{Dir: f.dir, Anchor: wanted(), To: c.to, Lock: f.lock})
			failed, ok := errors.AsType[*fault.Fault](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.code, failed.Code, "%v", err)
			for _, s := range c.says {
				require.ErrorContains(t, err, s)
			}
			if c.code == imageref.CodeLogin {
				require.Contains(t, failed.Fix, "docker login 127.0.0.1:")
			}
		})
	}
}

// unreachable is an address at which nothing listens any more.
func unreachable(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	return strings.TrimPrefix(s.URL, "http://")
}

// elsewhere sends all requests to a test server, whatever host they name, and
// refuses TLS as that server does.
type elsewhere struct{ host string }

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" {
		return nil, http.ErrSchemeMismatch
	}
	r = r.Clone(r.Context())
	r.URL.Host = e.host
	return http.DefaultTransport.RoundTrip(r)
}

func TestPlainHTTPMustBeAllowed(t *testing.T) {
	f := newFixture(t)
	here, _ := server(t, nil)
	host, path, _ := strings.Cut(here, "/")
	for _, far := range []string{"192.168.7.7:5000/", "registry.example.com:5000/"} {
		o := Options{Dir: f.dir, Anchor: wanted(), To: far + path, Lock: f.lock, Transport: elsewhere{host}}
		_, err := Push(t.Context(), o)
		failed, ok := errors.AsType[*fault.Fault](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, registries.CodePlain, failed.Code, "%v", err)
		o.PlainHTTP = true
		_, err = Push(t.Context(), o)
		require.NoError(t, err, "%s with --plain-http", far)
	}
}

// TestWhatWasRefusedBefore: the guard refused a redirect, say, and the registry answered since.
func TestWhatWasRefusedBefore(t *testing.T) {
	f := newFixture(t)
	p, err := newPusher(Options{Dir: f.dir, Anchor: wanted(), To: "192.168.7.7:5000/slipway", Lock: f.lock})
	require.NoError(t, err)
	_, unsent := (&http.Client{Transport: p.guard}).Get("http://192.168.7.7:5000/v2/")
	require.ErrorIs(t, p.fault("", unsent), &fault.Fault{Code: registries.CodePlain})
	require.ErrorIs(t, p.fault("", &transport.Error{StatusCode: http.StatusForbidden}), &fault.Fault{Code: imageref.CodeLogin})
	require.ErrorIs(t, p.fault("", &transport.Error{StatusCode: http.StatusInternalServerError}), &fault.Fault{Code: imageref.CodePull})
}

func TestADamagedBundleIsNotPushed(t *testing.T) {
	f := newFixture(t)
	to, uploads := server(t, nil)
	damaged := append([]byte{}, f.files[bundle.WorkloadArchive]...)
	damaged[len(damaged)/2] ^= 1
	f.write(t, bundle.WorkloadArchive, damaged)
	_, err := Push(t.Context(), Options{Dir: f.dir, Anchor: wanted(), To: to, Lock: f.lock})
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeContent})
	require.ErrorContains(t, err, bundle.WorkloadArchive)
	require.Zero(t, uploads.Load())

	f.write(t, bundle.WorkloadArchive, f.files[bundle.WorkloadArchive])
	f.lock.Images[0].Version = "2"
	_, err = Push(t.Context(), Options{Dir: f.dir, Anchor: wanted(), To: to, Lock: f.lock})
	require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeLock})
	require.Zero(t, uploads.Load())
}

// A blob that differs from its name inside an archive whose own sum is right is
// refused by the registry, which sums what it is given.
func TestATamperedBlobIsRefused(t *testing.T) {
	f := newFixture(t)
	to, _ := server(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/gitea/") {
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader("x"), r.Body))
		}
		return false
	})
	_, err := Push(t.Context(), Options{Dir: f.dir, Anchor: wanted(), To: to, Lock: f.lock})
	require.ErrorIs(t, err, &fault.Fault{Code: imageref.CodePull})
	require.ErrorContains(t, err, "the image gitea")
}

// TestARegistryWithAnAuthorityOfItsOwn: real TLS, accounts, limits and proxies.
func TestARegistryWithAnAuthorityOfItsOwn(t *testing.T) {
	f := newFixture(t)
	real := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	busy := false
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch user, password, _ := r.BasicAuth(); {
		case busy:
			w.WriteHeader(http.StatusTooManyRequests)
		case user != "pusher" || password != "right":
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			real.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(tls.Close)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	t.Cleanup(between.Close)
	proxy, err := url.Parse(between.URL)
	require.NoError(t, err)
	to := strings.TrimPrefix(tls.URL, "https://") + "/team"
	host, _, _ := strings.Cut(to, "/")
	as := func(password string) authn.Keychain { return account{"pusher", password} }
	failed := func(o Options) *fault.Fault {
		o.Dir, o.Anchor, o.To, o.Lock = f.dir, wanted(), to, f.lock
		_, err := Push(t.Context(), o)
		failed, ok := errors.AsType[*fault.Fault](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, fault.Preflight, failed.Class)
		require.NotContains(t, err.Error(), "wrong")
		return failed
	}
	trusting := tls.Client().Transport

	without := failed(Options{Keychain: as("right"), Transport: http.DefaultTransport})
	require.Equal(t, fault.Code(imageref.CodeCertificate), without.Code, "%v", without)
	require.Contains(t, without.Fix, "update-ca-certificates")
	require.Equal(t, fault.Code(imageref.CodeLogin), failed(Options{Keychain: as("wrong"), Transport: trusting}).Code)
	require.Contains(t, failed(Options{Keychain: authn.NewMultiKeychain(), Transport: trusting}).Fix, "docker login "+host)
	busy = true
	require.Equal(t, fault.Code(imageref.CodeLimit), failed(Options{Keychain: as("right"), Transport: trusting}).Code)
	busy = false
	proxied := trusting.(*http.Transport).Clone()
	proxied.Proxy = http.ProxyURL(proxy)
	require.Equal(t, fault.Code(imageref.CodeProxy), failed(Options{Keychain: as("right"), Transport: proxied}).Code)
	_, err = Push(t.Context(), Options{Dir: f.dir, Anchor: wanted(), To: to, Lock: f.lock, Keychain: as("right"), Transport: trusting})
	require.NoError(t, err)
}
