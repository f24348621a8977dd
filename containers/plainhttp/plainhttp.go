// Package plainhttp keeps requests to registries from going out without TLS, where the
// client library would try that by itself.
package plainhttp

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
)

// Code: the registry speaks HTTP without TLS, on another machine than this one.
const Code fault.Code = "REG-003"

// ErrRefused is the cause of a request that was not sent.
var ErrRefused = errors.New("plain HTTP is not allowed")

// Guard lets requests without TLS pass to this machine only, unless Allow is set. It may
// be used concurrently.
type Guard struct {
	Next  http.RoundTripper
	Allow bool

	refused atomic.Bool
}

// RoundTrip sends r unless it is refused.
func (g *Guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "http" && !g.Allow && !lock.IsLoopback(r.URL.Hostname()) {
		g.refused.Store(true)
		return nil, fmt.Errorf("%w with %s", ErrRefused, r.URL.Host)
	}
	return g.Next.RoundTrip(r)
}

// Refused reports whether a request was not sent.
func (g *Guard) Refused() bool { return g.refused.Load() }
