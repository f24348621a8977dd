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
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/plainhttp"
	"github.com/slipway-sh/slipway/fault"
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
	for status, code := range map[int]fault.Code{http.StatusUnauthorized: lock.CodeRefused, http.StatusNotFound: CodeAbsent} {
		const far = "192.168.7.7:5000"
		_, err := add(t, Options{Dir: newBundle(t), Transport: plain{host: far}}, far+"/web:1", refusing(status)+"/web:1")
		require.ErrorIs(t, err, &fault.Fault{Code: plainhttp.Code})
		require.ErrorIs(t, err, &fault.Fault{Code: code}, "%v", err)

		_, err = add(t, Options{Dir: newBundle(t), Transport: plain{host: far, down: true}}, far+"/web:1")
		require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeUnreachable}, "nothing listens there: %v", err)
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
		{&transport.Error{StatusCode: http.StatusTooManyRequests}, lock.CodeUnreachable, "later, or log in with an account that may pull more: docker login quay.io"},
		{&transport.Error{StatusCode: http.StatusInternalServerError}, lock.CodeUnreachable, "run the same command again: "},
		{&transport.Error{StatusCode: http.StatusServiceUnavailable}, lock.CodeUnreachable, "run the same command again: "},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, lock.CodeUnreachable, "run the same command again: "},
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
							w.Header().Set("Content-Length", "1000")
							_, _ = io.WriteString(w, "the beginning")
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
				require.Equal(t, lock.CodeUnreachable, f.Code, "%v", err)
				require.Contains(t, f.Fix, "run the same command again: ")
				require.Equal(t, before, content(t, dir))
			})
		}
	}
}
