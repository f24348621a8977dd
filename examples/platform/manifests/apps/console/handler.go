package main

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The deadlines of what one request waits for.
const (
	rowsTimeout   = 5 * time.Second
	issuerTimeout = 10 * time.Second
	checkTimeout  = time.Second // below that of the readiness probe
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

// Rows is where a handler's rows are.
type Rows interface {
	Record(ctx context.Context, in SignIn) error
	Latest(ctx context.Context) ([]SignIn, error)
	Check(ctx context.Context) (maintenance string, err error)
}

// Identity is who users sign in at.
type Identity interface {
	Discover(ctx context.Context) error
	Begin(ctx context.Context) (a Attempt, address string, err error)
	Finish(ctx context.Context, a Attempt, code string) (Session, error)
}

// Options are what the console shows besides its rows.
type Options struct {
	Title, ClusterID, Licensee string
}

type handler struct {
	Options
	rows     Rows
	identity Identity
	cookies  *sealer
	page     *template.Template
	log      *slog.Logger
}

// Handler answers
//
//	GET  /          who has signed in, and the latest sign-ins; without a session, where to sign in
//	GET  /login     sends the browser to the issuer
//	GET  /callback  takes it back
//	POST /logout    ends the session
//	GET  /livez     200 while the process serves
//	GET  /readyz    200 while the database answers, else 503
//	GET  /healthz   200 while users can sign in and the console is not in maintenance, else 503 and what is missing
//
// What went wrong is logged, not told to the client.
func Handler(rows Rows, identity Identity, cookies *sealer, o Options, log *slog.Logger) http.Handler {
	h := &handler{o, rows, identity, cookies, template.Must(template.New("page").Parse(page)), log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.index)
	mux.HandleFunc("GET /login", h.login)
	mux.HandleFunc("GET "+callbackPath, h.callback)
	mux.HandleFunc("POST /logout", h.logout)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, "text/plain", []byte("ok\n")) })
	mux.HandleFunc("GET /readyz", h.ready)
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
	var session *Session
	var rows []SignIn
	if s := (Session{}); h.cookies.open(r, sessionCookie, &s) {
		ctx, cancel := context.WithTimeout(r.Context(), rowsTimeout)
		defer cancel()
		var err error
		if rows, err = h.rows.Latest(ctx); err != nil {
			h.fail(w, http.StatusServiceUnavailable, "rows", err)
			return
		}
		session = &s
	}
	var body bytes.Buffer
	err := h.page.Execute(&body, struct {
		Options
		Session *Session
		SignIns []SignIn
	}{h.Options, session, rows})
	if err != nil {
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
	in := SignIn{Subject: session.Subject, Name: session.Name, Email: session.Email, At: h.cookies.now().UTC()}
	if err := h.rows.Record(ctx, in); err != nil {
		h.fail(w, http.StatusServiceUnavailable, "sign in", err)
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

func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	if _, err := h.rows.Check(ctx); err != nil {
		h.fail(w, http.StatusServiceUnavailable, "readiness", err)
		return
	}
	answer(w, "text/plain", []byte("ready\n"))
}

func (h *handler) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	var unanswered error
	var wg sync.WaitGroup // one that is slow takes no time from the other
	wg.Go(func() { unanswered = h.identity.Discover(ctx) })
	maintenance, err := h.rows.Check(ctx)
	wg.Wait()
	var missing []string
	if err != nil {
		h.log.Error("health", "error", err.Error())
		missing = append(missing, "the database does not answer")
	}
	if maintenance != "" {
		missing = append(missing, "in maintenance: "+maintenance)
	}
	if unanswered != nil {
		h.log.Error("health", "error", unanswered.Error())
		missing = append(missing, "the issuer does not answer")
	}
	if len(missing) > 0 {
		http.Error(w, strings.Join(missing, "\n"), http.StatusServiceUnavailable)
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
