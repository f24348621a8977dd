// Package daggercli runs the dagger CLI on behalf of Dagger's SDK, so that a Ctrl-C in
// the terminal does not end a session under the steps that are to finish. It also has the
// configuration of the engine that the CLI starts.
package daggercli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/slipway-sh/slipway/fault"
)

// Variables of the environment by which Dagger's SDK finds its CLI and, inside a
// session, the session; ours holds the CLI while the first one names this program.
const (
	EnvCLI     = "_EXPERIMENTAL_DAGGER_CLI_BIN"
	EnvSession = "DAGGER_SESSION_PORT"
	EnvToken   = "DAGGER_SESSION_TOKEN"
	EnvRunner  = "_EXPERIMENTAL_DAGGER_RUNNER_HOST" // where the engine is
	envShield  = "SLIPWAY_DAGGER_CLI"
)

// Shield puts this program between the SDK and the dagger CLI, which then gets a
// process group of its own: a terminal's Ctrl-C goes to everything in the group in
// front, and a CLI that it reached would end the session under the steps that
// are to finish.
func Shield() error {
	cli := os.Getenv(EnvCLI)
	if cli == "" || os.Getenv(EnvSession) != "" || !shields {
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
	if err := os.Setenv(EnvCLI, self); err != nil {
		return fmt.Errorf("hand the dagger CLI on: %w", err)
	}
	return nil
}

// Shielded reports whether Dagger's SDK calls this program in place of the dagger CLI.
func Shielded() bool { return os.Getenv(envShield) != "" }

// sessionTimeout is how long the dagger CLI may take to end a session: seconds,
// when it still has spans to send.
const sessionTimeout = 15 * time.Second

// Run runs the dagger CLI in the place of this program, in a process group
// of its own.
func Run(args []string, errw io.Writer) int {
	cli := os.Getenv(envShield)
	err := os.Setenv(EnvCLI, cli)
	if err == nil {
		err = os.Unsetenv(envShield)
	}
	var code int
	if err == nil {
		code, err = attend(cli, args, sessionTimeout, os.Stdin, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintf(errw, "slipway: run the dagger CLI %s: %v\n", cli, err)
		return int(fault.Preflight)
	}
	return code
}
