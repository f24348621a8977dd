// Package web is what the example programs have in common: commands that take their settings
// from the environment, and a web server that stops without losing a request.
package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// After the signal to stop, a server still accepts requests for linger, because clients learn
// late that the Pod goes away, and then finishes the running ones within grace. Both together
// are below the Pod's terminationGracePeriodSeconds.
const (
	linger = 3 * time.Second
	grace  = 5 * time.Second
)

// Command is what a program does until it is done or ctx ends.
type Command func(ctx context.Context, env *Env, log *slog.Logger) error

// Main carries out the command that the arguments name until it is done or the process is told to
// stop, and returns the exit code. A program with one command names it "".
func Main(ctx context.Context, commands map[string]Command) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, os.Args[1:], os.Getenv, os.Stderr, commands)
}

// Run is Main without the process: it returns the exit code, which is 2 for a wrong command line.
func Run(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, commands map[string]Command) int {
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	name := strings.Join(args, " ")
	command := commands[name]
	if command == nil {
		log.Error("unknown command", "command", name, "want", slices.Sorted(maps.Keys(commands)))
		return 2
	}
	if err := command(ctx, &Env{getenv: getenv}, log); err != nil {
		log.Error("failed", "command", name, "error", err.Error())
		return 1
	}
	return 0
}

// Secret is text that no log shows.
type Secret string

// String hides the secret.
func (Secret) String() string { return "[secret]" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "[secret]" }

// Env reads settings from the environment and collects what is wrong with them.
type Env struct {
	getenv   func(string) string
	problems []error
}

// Err is everything that was wrong with the settings read so far.
func (e *Env) Err() error { return errors.Join(e.problems...) }

// Optional returns a setting, or "".
func (e *Env) Optional(name string) string { return strings.TrimSpace(e.getenv(name)) }

// Text returns a setting; one without fallback is required.
func (e *Env) Text(name, fallback string) string {
	if v := e.Optional(name); v != "" {
		return v
	}
	if fallback == "" {
		e.problems = append(e.problems, fmt.Errorf("%s is not set", name))
	}
	return fallback
}

// URL returns an absolute URL without a slash at its end.
func (e *Env) URL(name string) string {
	v := strings.TrimSuffix(e.Text(name, ""), "/")
	if u, err := url.Parse(v); v != "" && (err != nil || u.Host == "") {
		e.problems = append(e.problems, fmt.Errorf("%s: %q is no URL", name, v))
	}
	return v
}

// File returns the content of the file that a setting names, without newlines at its end.
func (e *Env) File(name string) Secret {
	path := e.Text(name, "")
	if path == "" {
		return ""
	}
	text, err := os.ReadFile(path)
	content := strings.TrimRight(string(text), "\r\n")
	if err == nil && content == "" {
		err = fmt.Errorf("%s is empty", path)
	}
	if err != nil {
		e.problems = append(e.problems, fmt.Errorf("%s: %w", name, err))
	}
	return Secret(content)
}

// Serve answers on address until ctx is done, with the headers of Secure; without TLS if secure is
// nil.
func Serve(ctx context.Context, address string, secure *tls.Config, handler http.Handler, log *slog.Logger) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String())
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	return serve(ctx, listener, handler)
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           Secure(handler),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // probes that hang up
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	server.SetKeepAlivesEnabled(false) // the next request goes to another Pod
	time.Sleep(linger)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return server.Shutdown(last)
}

// Secure makes browsers and proxies keep nothing and run nothing, and rejects what other sites
// post.
func Secure(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// OK answers 200.
func OK(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

// Fail logs the cause of an error, which the client is not told.
func Fail(w http.ResponseWriter, log *slog.Logger, status int, err error) {
	log.Error(http.StatusText(status), "error", err.Error())
	http.Error(w, http.StatusText(status), status)
}
