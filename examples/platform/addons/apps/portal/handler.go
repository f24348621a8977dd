package main

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"
	"log/slog"
	"net/http"
	"time"
)

const (
	issuerTimeout = 10 * time.Second
	checkTimeout  = 2 * time.Second // below that of the readiness probe
)

// What a browser keeps, and for how long.
const (
	sessionCookie = "__Host-session"
	sessionLife   = 8 * time.Hour
	attemptCookie = "__Host-attempt"
	attemptLife   = 10 * time.Minute
)

// callbackPath is where the issuer sends browsers back to.
const callbackPath = "/callback"

//go:embed page.html
var page string

// Identity is who users sign in at.
type Identity interface {
	Discover(ctx context.Context) error
	Begin(ctx context.Context) (a Attempt, address string, err error)
	Finish(ctx context.Context, a Attempt, code string) (Session, error)
}

type handler struct {
	Shown
	identity Identity
	cookies  *sealer
	page     *template.Template
	log      *slog.Logger
}

// Handler answers
//
//	GET  /          who has signed in, and the addons; without a session, where to sign in
//	GET  /login     sends the browser to the issuer
//	GET  /callback  takes it back
//	POST /logout    ends the session
//	GET  /livez     200 while the process serves
//	GET  /healthz   200 while users can sign in, else 503
//
// What went wrong is logged, not told to the client.
func Handler(identity Identity, cookies *sealer, shown Shown, log *slog.Logger) http.Handler {
	h := &handler{shown, identity, cookies, template.Must(template.New("page").Parse(page)), log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.index)
	mux.HandleFunc("GET /login", h.login)
	mux.HandleFunc("GET "+callbackPath, h.callback)
	mux.HandleFunc("POST /logout", h.logout)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, "text/plain", []byte("ok\n")) })
	mux.HandleFunc("GET /healthz", h.health)
	return headers(http.NewCrossOriginProtection().Handler(mux))
}

// headers makes browsers and proxies keep nothing and run nothing.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Cache-Control":           "no-store",
			"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"Referrer-Policy":         "no-referrer",
			"X-Content-Type-Options":  "nosniff",
		} {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}

func (h *handler) index(w http.ResponseWriter, r *http.Request) {
	shown := struct {
		Shown
		Session *Session
	}{Shown: h.Shown}
	if s := (Session{}); h.cookies.open(r, sessionCookie, &s) {
		shown.Session = &s
	}
	var body bytes.Buffer
	if err := h.page.Execute(&body, shown); err != nil {
		h.fail(w, http.StatusInternalServerError, "write the page", err)
		return
	}
	answer(w, "text/html", body.Bytes())
}

func (h *handler) login(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), issuerTimeout)
	defer cancel()
	attempt, address, err := h.identity.Begin(ctx)
	if err == nil {
		err = h.cookies.set(w, attemptCookie, attempt, attemptLife)
	}
	if err != nil {
		h.fail(w, http.StatusServiceUnavailable, "sign in", err)
		return
	}
	http.Redirect(w, r, address, http.StatusFound)
}

func (h *handler) callback(w http.ResponseWriter, r *http.Request) {
	var attempt Attempt
	begun := h.cookies.open(r, attemptCookie, &attempt)
	forget(w, attemptCookie) // it is good for one answer
	said := r.URL.Query()
	switch {
	case !begun || said.Get("state") != attempt.State:
		http.Error(w, "This sign-in was begun elsewhere or too long ago: sign in again at /login", http.StatusBadRequest)
		return
	case said.Get("code") == "":
		h.log.Warn("the issuer refused a sign-in", "error", said.Get("error"), "description", said.Get("error_description"))
		http.Error(w, "You were not signed in: try again at /login", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), issuerTimeout)
	defer cancel()
	session, err := h.identity.Finish(ctx, attempt, said.Get("code"))
	if err != nil {
		h.fail(w, http.StatusBadGateway, "sign in", err)
		return
	}
	if err := h.cookies.set(w, sessionCookie, session, sessionLife); err != nil {
		h.fail(w, http.StatusInternalServerError, "sign in", err)
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (h *handler) logout(w http.ResponseWriter, r *http.Request) {
	forget(w, sessionCookie)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (h *handler) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	if err := h.identity.Discover(ctx); err != nil {
		h.log.Error("health", "error", err.Error())
		http.Error(w, "the issuer does not answer", http.StatusServiceUnavailable)
		return
	}
	answer(w, "text/plain", []byte("ok\n"))
}

func (h *handler) fail(w http.ResponseWriter, status int, what string, err error) {
	h.log.Error(what, "error", err.Error())
	http.Error(w, http.StatusText(status), status)
}

// answer writes a complete body. The client may be gone: there is nobody to tell, so the
// error of the write is dropped.
func answer(w http.ResponseWriter, kind string, body []byte) {
	w.Header().Set("Content-Type", kind+"; charset=utf-8")
	_, _ = w.Write(body)
}
