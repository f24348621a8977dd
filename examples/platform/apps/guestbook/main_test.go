package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rows is a database that holds entries, or answers with err.
type rows struct {
	all []Entry
	err error
}

func (r rows) list(context.Context) ([]Entry, error) { return r.all, r.err }
func (r rows) ping(context.Context) error            { return r.err }

func TestAnswers(t *testing.T) {
	full := rows{all: []Entry{{ID: 7, Author: "Ada", Message: "<b>hello</b>", Created: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)}}}
	empty, broken := rows{all: []Entry{}}, rows{err: errors.New("dial tcp 10.0.0.7:5432: refused")}
	for _, tc := range []struct {
		method, path   string
		from           source
		status         int
		kind, contains string
	}{
		{"GET", "/", full, 200, "text/html; charset=utf-8", "&lt;b&gt;hello&lt;/b&gt;<br><small>Ada, 2026-01-05 09:00 UTC</small>"},
		{"GET", "/", full, 200, "text/html; charset=utf-8", "<h1>Rows &amp; more</h1>"},
		{"GET", "/", empty, 200, "text/html; charset=utf-8", "Nothing has been written yet."},
		{"GET", "/api/entries", full, 200, "application/json; charset=utf-8", `[{"id":7,"author":"Ada","message":"\u003cb\u003ehello\u003c/b\u003e","created":"2026-01-05T09:00:00Z"}]`},
		{"GET", "/api/entries", empty, 200, "application/json; charset=utf-8", "[]\n"},
		{"GET", "/healthz", broken, 200, "", "ok"},
		{"GET", "/readyz", full, 200, "", "ok"},
		{"GET", "/readyz", broken, 503, "text/plain; charset=utf-8", "Service Unavailable"},
		{"GET", "/", broken, 503, "text/plain; charset=utf-8", "Service Unavailable"},
		{"GET", "/api/entries", broken, 503, "text/plain; charset=utf-8", "Service Unavailable"},
		{"GET", "/admin", full, 404, "text/plain; charset=utf-8", "404"},
		{"POST", "/api/entries", full, 405, "text/plain; charset=utf-8", "Method Not Allowed"},
	} {
		w := httptest.NewRecorder()
		handler(tc.from, "Rows & more", slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, nil))
		require.Equal(t, tc.status, w.Code, tc.path)
		require.Contains(t, w.Body.String(), tc.contains)
		if tc.kind != "" {
			require.Equal(t, tc.kind, w.Result().Header.Get("Content-Type"))
		}
	}
}
