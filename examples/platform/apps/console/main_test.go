package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/examples/platform/apps/signin"
)

// fixed is a database that gives one answer.
type fixed struct {
	maintenance string
	err         error
	hangs       bool
}

func (f fixed) record(context.Context, signin.Session) error { return f.err }
func (f fixed) latest(context.Context) ([]SignIn, error)     { return nil, f.err }
func (f fixed) check(ctx context.Context) (string, error) {
	if f.hangs {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return f.maintenance, f.err
}

// TestHealth is without an issuer.
func TestHealth(t *testing.T) {
	const away = "the issuer does not answer\n"
	down := errors.New("dial tcp 10.0.0.7:5432: refused")
	for name, tc := range map[string]struct {
		rows  fixed
		says  string // /healthz
		ready int    // status of /readyz
	}{
		"no issuer":      {fixed{}, away, 200},
		"no database":    {fixed{err: down}, "the database does not answer\n" + away, 503},
		"a silent one":   {fixed{hangs: true}, "the database does not answer\n" + away, 503},
		"in maintenance": {fixed{maintenance: "moving house"}, "in maintenance: moving house\n" + away, 200},
	} {
		t.Run(name, func(t *testing.T) {
			h := handler(tc.rows, &signin.Users{}, options{}, slog.New(slog.DiscardHandler))
			get := func(path string) *httptest.ResponseRecorder {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
				return w
			}
			w := get("/healthz")
			require.Equal(t, 503, w.Code)
			require.Equal(t, tc.says, w.Body.String())
			require.Equal(t, tc.ready, get("/readyz").Code)
			require.Equal(t, 200, get("/livez").Code)
		})
	}
}

func TestAStrangerSeesNoRows(t *testing.T) {
	h := handler(fixed{}, &signin.Users{}, options{Title: "Rows & more", ClusterID: "cluster-1", Licensee: "Grace"}, slog.New(slog.DiscardHandler))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	require.Contains(t, w.Body.String(), "<h1>Rows &amp; more</h1>")
	require.Contains(t, w.Body.String(), `<a href="/login">Sign in</a>`)
	require.Contains(t, w.Body.String(), "Licensed to Grace")
	require.NotContains(t, w.Body.String(), "cluster-1")
}
