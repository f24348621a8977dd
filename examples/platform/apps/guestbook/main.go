// Command guestbook is the web app of Slipway's reference platform. It shows the
// rows of a PostgreSQL table as a page and as JSON, and it is ready only while
// its database answers.
//
// It is configured by the environment; see Config.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Once the program was told to stop, it serves on for as long as it may take until nobody
// sends it requests any more, and then finishes those that it has. Both together are below
// the Pod's terminationGracePeriodSeconds.
const (
	linger = 3 * time.Second
	grace  = 5 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Getenv, os.Stderr))
}

// run serves until ctx is done and returns the exit code: 0 after a clean stop,
// 2 for a wrong configuration, 1 for anything else.
func run(ctx context.Context, getenv func(string) string, stderr io.Writer) int {
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	cfg, err := ConfigFrom(getenv, os.ReadFile)
	if err != nil {
		log.Error("configuration", "error", err.Error())
		return 2
	}
	entries, err := Open(ctx, cfg.Database)
	if err != nil {
		log.Error("open the database", "error", err.Error())
		return 1
	}
	defer entries.Close()

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		log.Error("listen", "error", err.Error())
		return 1
	}
	log.Info("serving", "address", listener.Addr().String(), "database", cfg.Database.String())
	if err := serve(ctx, listener, Handler(entries, cfg.Title, log), linger); err != nil {
		log.Error("serve", "error", err.Error())
		return 1
	}
	log.Info("stopped")
	return 0
}

// serve answers on listener until ctx is done and for linger after that, then lets running
// requests finish for at most grace.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, linger time.Duration) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	server.SetKeepAlivesEnabled(false) // who comes again finds another one
	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-time.After(linger):
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return fmt.Errorf("finish the running requests: %w", err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
