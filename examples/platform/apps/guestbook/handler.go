package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"html/template"
	"log/slog"
	"net/http"
	"time"
)

// The deadlines of the database for one request.
const (
	listTimeout = 8 * time.Second
	pingTimeout = 4 * time.Second // below the timeout of the readiness probe
)

//go:embed page.html
var page string

// Source is where a handler's entries come from.
type Source interface {
	List(ctx context.Context) ([]Entry, error)
	Ping(ctx context.Context) error
}

type handler struct {
	entries Source
	title   string
	page    *template.Template
	log     *slog.Logger
}

// Handler answers
//
//	GET /             the entries as a page
//	GET /api/entries  the entries as a JSON array, never null
//	GET /healthz      200 while the process serves
//	GET /readyz       200 while the database answers, else 503
//
// What went wrong with the database is logged, not told to the client.
func Handler(entries Source, title string, log *slog.Logger) http.Handler {
	h := &handler{entries, title, template.Must(template.New("page").Parse(page)), log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.index)
	mux.HandleFunc("GET /api/entries", h.list)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, "text/plain", []byte("ok\n")) })
	mux.HandleFunc("GET /readyz", h.ready)
	return headers(mux)
}

// headers makes browsers and proxies keep nothing and run nothing.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

func (h *handler) index(w http.ResponseWriter, r *http.Request) {
	entries, ok := h.read(w, r)
	if !ok {
		return
	}
	var body bytes.Buffer
	err := h.page.Execute(&body, struct {
		Title   string
		Entries []Entry
	}{h.title, entries})
	if err != nil {
		h.fail(w, http.StatusInternalServerError, "write the page", err)
		return
	}
	answer(w, "text/html", body.Bytes())
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	entries, ok := h.read(w, r)
	if !ok {
		return
	}
	if entries == nil {
		entries = []Entry{}
	}
	body, err := json.Marshal(entries)
	if err != nil {
		h.fail(w, http.StatusInternalServerError, "write the entries", err)
		return
	}
	answer(w, "application/json", append(body, '\n'))
}

func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pingTimeout)
	defer cancel()
	if err := h.entries.Ping(ctx); err != nil {
		h.fail(w, http.StatusServiceUnavailable, "readiness", err)
		return
	}
	answer(w, "text/plain", []byte("ready\n"))
}

func (h *handler) read(w http.ResponseWriter, r *http.Request) ([]Entry, bool) {
	ctx, cancel := context.WithTimeout(r.Context(), listTimeout)
	defer cancel()
	entries, err := h.entries.List(ctx)
	if err != nil {
		h.fail(w, http.StatusServiceUnavailable, "list", err)
		return nil, false
	}
	return entries, true
}

func (h *handler) fail(w http.ResponseWriter, status int, what string, err error) {
	h.log.Error(what, "error", err.Error())
	http.Error(w, http.StatusText(status), status)
}

// answer writes a complete body. The client may be gone: there is nobody to
// tell, so the error of the write is dropped.
func answer(w http.ResponseWriter, kind string, body []byte) {
	w.Header().Set("Content-Type", kind+"; charset=utf-8")
	_, _ = w.Write(body)
}
