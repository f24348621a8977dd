package registries

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// CodePlain: the registry speaks HTTP without TLS, on another machine than this one.
const CodePlain fault.Code = "REG-003"

var errRefused = errors.New("plain HTTP is not allowed")

// Guard lets requests without TLS pass to this machine only, unless Allow is set: the client library
// tries without TLS by itself. It may be used concurrently.
type Guard struct {
	Next  http.RoundTripper
	Allow bool
}

// RoundTrip sends r unless it is refused.
func (g *Guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "http" && !g.Allow && !imageref.IsLoopback(r.URL.Hostname()) {
		return nil, fmt.Errorf("%w with %s", errRefused, r.URL.Host)
	}
	return g.Next.RoundTrip(r)
}

// WantsPlain reports whether an error is that of a registry at a host that speaks HTTP without
// TLS, which is not allowed. Where the client could not connect to the host's port, it is
// not: it tried without TLS because of that.
func WantsPlain(err error, host string) bool {
	_, _, portErr := net.SplitHostPort(host)
	if broken, ok := errors.AsType[*net.OpError](err); ok && broken.Op == "dial" && portErr == nil {
		return false
	}
	return errors.Is(err, errRefused) || errors.Is(err, http.ErrSchemeMismatch)
}
