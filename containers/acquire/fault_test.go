package acquire

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/registries"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// plain is a transport to which one host refuses TLS, or does not answer.
type plain struct {
	host string
	down bool
}

func (p plain) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.URL.Host != p.host:
		return http.DefaultTransport.RoundTrip(r)
	case p.down:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return nil, http.ErrSchemeMismatch
}

func TestEachImageIsJudgedByItsOwnRegistry(t *testing.T) {
	refusing := func(status int) string {
		return server(t, func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/v2/" {
				w.WriteHeader(status)
			}
			return r.URL.Path != "/v2/"
		})
	}
	for status, code := range map[int]fault.Code{http.StatusUnauthorized: imageref.CodeLogin, http.StatusNotFound: CodeAbsent} {
		const far = "192.168.7.7:5000"
		_, err := add(t, Options{Dir: newBundle(t), Transport: plain{host: far}}, far+"/web:1", refusing(status)+"/web:1")
		require.ErrorIs(t, err, &fault.Fault{Code: registries.CodePlain})
		require.ErrorIs(t, err, &fault.Fault{Code: code}, "%v", err)

		_, err = add(t, Options{Dir: newBundle(t), Transport: plain{host: far, down: true}}, far+"/web:1")
		require.ErrorIs(t, err, &fault.Fault{Code: imageref.CodeUnreachable}, "nothing listens there: %v", err)
	}
}

func TestARegistryThatCannotNow(t *testing.T) {
	dir := newBundle(t)
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	a := &adder{bundle: b}
	r, err := ParseRequest("quay.io/web:1")
	require.NoError(t, err)
	for _, c := range []struct {
		err  error
		code fault.Code
		says string
	}{
		{&transport.Error{StatusCode: http.StatusTooManyRequests}, imageref.CodeLimit, "later, or log in with an account that may pull more: docker login quay.io"},
		{&transport.Error{StatusCode: http.StatusInternalServerError}, imageref.CodeUnreachable, "run the same command again: "},
		{&transport.Error{StatusCode: http.StatusServiceUnavailable}, imageref.CodeUnreachable, "run the same command again: "},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, imageref.CodeUnreachable, "run the same command again: "},
		{&transport.Error{StatusCode: http.StatusBadRequest}, CodeSource, "correct the source"},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.EIO}, CodeSource, "correct the source"},
	} {
		f, ok := errors.AsType[*fault.Fault](a.fault(r, c.err))
		require.True(t, ok)
		require.Equal(t, c.code, f.Code, "%v", c.err)
		require.Contains(t, f.Fix, c.says)
	}
	r.Path = "web.tar"
	require.ErrorIs(t, a.fault(r, io.ErrUnexpectedEOF), &fault.Fault{Code: CodeSource}, "a file that is cut is no registry's")
}

// TestAnAnswerThatIsCut: of the config, and of a layer.
func TestAnAnswerThatIsCut(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for n := 1; n <= 2; n++ {
			t.Run(fmt.Sprintf("HTTP/2 %v, blob %d", http2, n), func(t *testing.T) {
				real := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
				pushed := httptest.NewServer(real)
				t.Cleanup(pushed.Close)
				push(t, strings.TrimPrefix(pushed.URL, "http://")+"/web:1", platform(t, "linux", "amd64"))
				blobs := 0
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
						if blobs++; blobs == n {
							whole := httptest.NewRecorder()
							real.ServeHTTP(whole, r)
							w.Header().Set("Content-Length", strconv.Itoa(whole.Body.Len()))
							_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
							_ = http.NewResponseController(w).Flush()
							panic(http.ErrAbortHandler)
						}
					}
					real.ServeHTTP(w, r)
				}))
				s.EnableHTTP2 = http2
				s.StartTLS()
				t.Cleanup(s.Close)
				dir := newBundle(t)
				before := content(t, dir)
				_, err := add(t, Options{Dir: dir, Transport: s.Client().Transport}, strings.TrimPrefix(s.URL, "https://")+"/web:1")
				f, ok := errors.AsType[*fault.Fault](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, fault.Code(imageref.CodeUnreachable), f.Code, "%v", err)
				require.Contains(t, f.Fix, "run the same command again: ")
				require.Equal(t, before, content(t, dir))
			})
		}
	}
}

// TestARegistryWithAnAuthorityOfItsOwn: real TLS, accounts, limits and proxies.
func TestARegistryWithAnAuthorityOfItsOwn(t *testing.T) {
	real := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	pushed := httptest.NewServer(real)
	t.Cleanup(pushed.Close)
	push(t, strings.TrimPrefix(pushed.URL, "http://")+"/web:1", platform(t, "linux", "amd64"))
	busy := false
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch user, password, _ := r.BasicAuth(); {
		case busy:
			w.WriteHeader(http.StatusTooManyRequests)
		case user != "puller" || password != "right":
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
	host := strings.TrimPrefix(tls.URL, "https://")
	as := func(password string) authn.Keychain { return account{"puller", password} }
	failed := func(o Options) *fault.Fault {
		o.Dir = newBundle(t)
		_, err := add(t, o, host+"/web:1")
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
	dir := newBundle(t)
	_, err = add(t, Options{Dir: dir, Keychain: as("right"), Transport: trusting}, host+"/web:1")
	require.NoError(t, err)
	imageOf(t, dir, host+"/web:1")
}

// account is a keychain with one account, whatever registry asks.
type account struct{ user, password string }

func (a account) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: a.user, Password: a.password}, nil
}
