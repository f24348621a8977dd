package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/fault"
)

// Variables of the environment by which Dagger's SDK finds its CLI and, inside a
// session, the session; ours holds the CLI while the first one names this program.
const (
	envCLI     = "_EXPERIMENTAL_DAGGER_CLI_BIN"
	envSession = "DAGGER_SESSION_PORT"
	envShield  = "SLIPWAY_DAGGER_CLI"
)

// connect opens a session on the Dagger engine, whose log goes to log. The
// session outlives ctx: a run that was interrupted still writes its record and
// stops its cluster. The caller closes the client.
func connect(ctx context.Context, log io.Writer) (*dagger.Client, error) {
	if err := shield(); err != nil {
		return nil, err
	}
	type answer struct {
		client *dagger.Client
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		client, err := dagger.Connect(context.WithoutCancel(ctx), dagger.WithLogOutput(log))
		done <- answer{client, err}
	}()
	select {
	case a := <-done:
		if a.err != nil {
			return nil, &fault.Fault{Code: codeNoEngine, Class: fault.Preflight, Op: "connect to the Dagger engine",
				Fix: "start one with make engine, then eval \"$(make -s engine-env)\"", Err: a.err}
		}
		return a.client, nil
	case <-ctx.Done():
		go func() { // the process ends soon; a session that opens meanwhile is closed
			if a := <-done; a.client != nil {
				_ = a.client.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// shield puts this program between the SDK and the dagger CLI, which then gets a
// process group of its own: a terminal's Ctrl-C goes to everything in the group in
// front, and a CLI that it reached would end the session under the steps that
// are to finish.
func shield() error {
	cli := os.Getenv(envCLI)
	if cli == "" || os.Getenv(envSession) != "" || !shields {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if cli == self {
		return nil // shielded already
	}
	if err := os.Setenv(envShield, cli); err != nil {
		return fmt.Errorf("hand the dagger CLI on: %w", err)
	}
	if err := os.Setenv(envCLI, self); err != nil {
		return fmt.Errorf("hand the dagger CLI on: %w", err)
	}
	return nil
}

// isSession tells whether the SDK called this program in place of the dagger CLI.
func isSession(args []string) bool {
	return len(args) > 0 && args[0] == "session" && os.Getenv(envShield) != ""
}

// sessionPatience is how long the dagger CLI may take to end a session: seconds,
// when it still has spans to send.
const sessionPatience = 15 * time.Second

// runSession runs the dagger CLI in the place of this program, in a process group
// of its own.
func runSession(args []string, errw io.Writer) int {
	cli := os.Getenv(envShield)
	err := os.Setenv(envCLI, cli)
	if err == nil {
		err = os.Unsetenv(envShield)
	}
	var code int
	if err == nil {
		code, err = attend(cli, args, sessionPatience, os.Stdin, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintf(errw, "slipway: run the dagger CLI %s: %v\n", cli, err)
		return int(fault.Preflight)
	}
	return code
}
