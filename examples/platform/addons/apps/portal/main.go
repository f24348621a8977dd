// Command portal is the portal of the addons platform, and what else of the platform is a
// program of ours:
//
//	portal serve          the web app: users sign in through Dex, and see the addons
//	portal register       makes users and the portal's client in Dex, and a Secret that says what it is
//	portal load-balancer  gives Services of a class the addresses of the nodes, or given ones
//
// All are configured by the environment: see ServerConfigFrom, RegisterConfigFrom and
// BalancerConfigFrom. register may be run again at any time.
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

const (
	// grace is how long requests that are being answered may take once the program was told
	// to stop. It is below the Pod's terminationGracePeriodSeconds.
	grace = 5 * time.Second
	// jobLimit is how long register may take.
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
		"serve": serveCommand, "register": registerCommand, "load-balancer": balancerCommand,
	}
	if len(args) != 1 || commands[args[0]] == nil {
		log.Error("usage: portal serve, portal register or portal load-balancer")
		return 2
	}
	err := commands[args[0]](ctx, getenv, log)
	if err == nil {
		return 0
	}
	log.Error(args[0], "error", err.Error())
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
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
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String(), "issuer", cfg.Issuer.URL)
	return serve(ctx, listener, Handler(NewIssuer(cfg.Issuer, cfg.PublicURL), cookies, cfg.Shown, log), log)
}

func registerCommand(ctx context.Context, getenv func(string) string, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, jobLimit)
	defer cancel()
	cfg, err := RegisterConfigFrom(getenv)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	cluster, err := InCluster(getenv)
	if err != nil {
		return err
	}
	done, err := Register(ctx, cfg, cluster)
	if err != nil {
		return err
	}
	log.Info("registered", "done", done)
	return nil
}

func balancerCommand(ctx context.Context, getenv func(string) string, log *slog.Logger) error {
	class := getenv("CLASS")
	if class == "" {
		return fmt.Errorf("%w: CLASS: want the class of the Services", errUsage)
	}
	given, err := parseAddresses(getenv("ADDRESSES"))
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	cluster, err := InCluster(getenv)
	if err != nil {
		return err
	}
	Balance(ctx, cluster, class, given, 5*time.Second, log)
	return nil
}

// serve answers on listener until ctx is done, then lets running requests finish for at most
// grace.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second, // a sign-in waits for the issuer twice
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
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
