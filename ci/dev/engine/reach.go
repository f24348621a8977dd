package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/ci/dev/build"
)

// daggerVersion is the version of engine, CLI and SDK alike.
const daggerVersion = "v0.20.8"

// The variables by which clients of Dagger find engine and CLI.
const (
	envRunner = "_EXPERIMENTAL_DAGGER_RUNNER_HOST"
	envCLI    = "_EXPERIMENTAL_DAGGER_CLI_BIN"
)

// How long an engine may take to take a connection, and to say its version: it
// does so when it has started completely.
const (
	dialTimeout    = 2 * time.Second
	versionTimeout = time.Minute
)

// probe connects to a runner host and returns why that is not possible. Sockets
// are dialled; the other schemes that Dagger's CLI knows go through the CLI.
func probe(ctx context.Context, host, cli string) error {
	u, err := url.Parse(host)
	if err != nil {
		return fmt.Errorf("parse %s: %w", envRunner, err)
	}
	switch u.Scheme {
	case "unix":
		return dial(ctx, "unix", u.Path)
	case "tcp":
		return dial(ctx, "tcp", u.Host)
	}
	if cli == "" {
		return fmt.Errorf("ask %s: no dagger CLI %s to connect with", host, daggerVersion)
	}
	return coreVersion(ctx, cli, host)
}

func dial(ctx context.Context, network, address string) error {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// coreVersion has the CLI query an engine's version: the whole way there and back.
func coreVersion(ctx context.Context, cli, host string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, versionTimeout, fmt.Errorf("no answer within %s", versionTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, cli, "--progress=plain", "core", "version")
	cmd.Env = append(os.Environ(), envRunner+"="+host, "DO_NOT_TRACK=1", "DAGGER_NO_NAG=1")
	cmd.Dir = filepath.Dir(cli) // no dagger.json here: a module would be loaded first
	out, err := cmd.CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("ask the engine at %s for its version: %w; last seen:\n%s", host, err, build.LastLines(string(out), 20))
	}
	if !strings.Contains(string(out), daggerVersion) {
		return fmt.Errorf("the engine at %s is not %s: %s", host, daggerVersion, build.LastLines(string(out), 3))
	}
	return nil
}

// cliOnPath is a dagger CLI of the right version on PATH, or empty.
func cliOnPath(ctx context.Context) string {
	path, err := exec.LookPath("dagger")
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "version")
	cmd.Env = append(os.Environ(), "DO_NOT_TRACK=1")
	out, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(out), "dagger "+daggerVersion+" ") { // as in "dagger v0.20.8 (…) linux/amd64"
		return ""
	}
	if path, err = filepath.Abs(path); err != nil {
		return ""
	}
	return path
}
