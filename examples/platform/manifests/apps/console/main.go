// Command console is the web app of the identity platform, and what the platform's Jobs
// run:
//
//	console serve         the web app: users sign in through Dex, and see who else has
//	console migrate       brings the database's schema to what the web app works on
//	console create-admin  makes the administrator in Dex, through its gRPC API
//
// The last two may be run again at any time. All are configured by the environment; see
// ServerConfig, Database and AdminConfig.
package main

import (
	"context"
	"crypto/tls"
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

const (
	// grace is how long requests that are being answered may take once the program was
	// told to stop. It is below the Pod's terminationGracePeriodSeconds.
	grace = 5 * time.Second
	// jobLimit is how long a command that is no server may take.
	jobLimit = 2 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stderr))
}

// errUsage is a wrong command line or configuration.
var errUsage = errors.New("configuration")

// run carries out a command and returns the exit code: 0 if it succeeded or was stopped in
// good order, 2 for a wrong command line or configuration, 1 for anything else.
func run(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer) int {
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	commands := map[string]func(context.Context, func(string) string, *slog.Logger) error{
		"serve": serveCommand, "migrate": migrateCommand, "create-admin": adminCommand,
	}
	if len(args) != 1 || commands[args[0]] == nil {
		log.Error("usage: console serve, console migrate or console create-admin")
		return 2
	}
	err := commands[args[0]](ctx, getenv, log)
	switch {
	case errors.Is(err, errUsage):
		log.Error(args[0], "error", err.Error())
		return 2
	case err != nil:
		log.Error(args[0], "error", err.Error())
		return 1
	}
	return 0
}

func serveCommand(ctx context.Context, getenv func(string) string, log *slog.Logger) error {
	cfg, err := ServerConfigFrom(getenv)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	cookies, err := newSealer(cfg.SessionKey, time.Now)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	identity, err := NewIssuer(cfg.Issuer, cfg.PublicURL)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	store, err := Open(ctx, cfg.Database)
	if err != nil {
		return err
	}
	defer store.Close()
	if _, err := tls.LoadX509KeyPair(cfg.Certificate, cfg.Key); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String(), "issuer", cfg.Issuer.URL, "database", cfg.Database.String())
	shown := Options{Title: cfg.Title, ClusterID: cfg.ClusterID, Licensee: cfg.Licensee}
	secure := tls.NewListener(listener, &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cfg.Certificate, cfg.Key)
			return &pair, err
		},
	})
	if err := serve(ctx, secure, Handler(store, identity, cookies, shown, log), log); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

func migrateCommand(ctx context.Context, getenv func(string) string, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, jobLimit)
	defer cancel()
	d, err := DatabaseFrom(getenv)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	applied, err := Migrate(ctx, d)
	if err != nil {
		return err
	}
	log.Info("migrated", "database", d.String(), "applied", applied, "version", schemaVersion())
	return nil
}

func adminCommand(ctx context.Context, getenv func(string) string, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, jobLimit)
	defer cancel()
	cfg, err := AdminConfigFrom(getenv)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	done, err := CreateAdmin(ctx, cfg)
	if err != nil {
		return err
	}
	log.Info("administrator", "email", cfg.Email, "result", done)
	return nil
}

// serve answers on listener until ctx is done, then lets running requests finish for at
// most grace.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second, // a sign-in waits for the issuer twice
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // probes that hang up
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
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
