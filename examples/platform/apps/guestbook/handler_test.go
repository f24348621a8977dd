package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// source is a database that holds entries, or answers with err.
type source struct {
	entries []Entry
	err     error
}

func (s source) List(context.Context) ([]Entry, error) { return s.entries, s.err }
func (s source) Ping(context.Context) error            { return s.err }

// hanging is a database that never answers by itself.
type hanging struct{}

func (hanging) List(ctx context.Context) ([]Entry, error) { <-ctx.Done(); return nil, ctx.Err() }
func (hanging) Ping(ctx context.Context) error            { <-ctx.Done(); return ctx.Err() }

func get(t *testing.T, s Source, method, path string) (*httptest.ResponseRecorder, string) {
	t.Helper()
	var logged bytes.Buffer
	w := httptest.NewRecorder()
	h := Handler(s, "Rows & more", slog.New(slog.NewTextHandler(&logged, nil)))
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return w, logged.String()
}

func TestAnswers(t *testing.T) {
	full := source{entries: []Entry{{ID: 7, Author: "Ada", Message: "<b>hello</b>", Created: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)}}}
	broken := source{err: errors.New("dial tcp 10.0.0.7:5432: refused")}
	for _, tc := range []struct {
		name, method, path string
		source             Source
		status             int
		kind, contains     string
	}{
		{"page", "GET", "/", full, 200, "text/html; charset=utf-8", "&lt;b&gt;hello&lt;/b&gt;<br><small>Ada, 2026-01-05 09:00 UTC</small>"},
		{"title is escaped", "GET", "/", full, 200, "text/html; charset=utf-8", "<h1>Rows &amp; more</h1>"},
		{"empty page", "GET", "/", source{}, 200, "text/html; charset=utf-8", "Nothing has been written yet."},
		{"head", "HEAD", "/", full, 200, "text/html; charset=utf-8", ""},
		{"entries", "GET", "/api/entries", full, 200, "application/json; charset=utf-8", `"author":"Ada"`},
		{"no entries are a list", "GET", "/api/entries", source{}, 200, "application/json; charset=utf-8", "[]\n"},
		{"live", "GET", "/healthz", broken, 200, "text/plain; charset=utf-8", "ok"},
		{"ready", "GET", "/readyz", full, 200, "text/plain; charset=utf-8", "ready"},
		{"not ready", "GET", "/readyz", broken, 503, "text/plain; charset=utf-8", "Service Unavailable"},
		{"page without database", "GET", "/", broken, 503, "text/plain; charset=utf-8", "Service Unavailable"},
		{"entries without database", "GET", "/api/entries", broken, 503, "text/plain; charset=utf-8", "Service Unavailable"},
		{"unknown path", "GET", "/admin", full, 404, "text/plain; charset=utf-8", "404"},
		{"wrong method", "POST", "/api/entries", full, 405, "text/plain; charset=utf-8", "Method Not Allowed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, _ := get(t, tc.source, tc.method, tc.path)
			require.Equal(t, tc.status, w.Code)
			require.Equal(t, tc.kind, w.Header().Get("Content-Type"))
			require.Contains(t, w.Body.String(), tc.contains)
			require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
			require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
		})
	}
}

func TestEntriesAreJSON(t *testing.T) {
	want := []Entry{{ID: 1, Author: "Grace", Message: "a \"quoted\" line", Created: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)}}
	w, _ := get(t, source{entries: want}, "GET", "/api/entries")
	var got []Entry
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	require.Equal(t, want, got)
}

func TestClientsDoNotSeeTheCause(t *testing.T) {
	w, logged := get(t, source{err: errors.New("dial tcp 10.0.0.7:5432: refused")}, "GET", "/readyz")
	require.NotContains(t, w.Body.String(), "10.0.0.7")
	require.Contains(t, logged, "dial tcp 10.0.0.7:5432: refused")
}

func TestReadinessHasADeadline(t *testing.T) {
	w, logged := get(t, hanging{}, "GET", "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, logged, context.DeadlineExceeded.Error())
}
