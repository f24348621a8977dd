// Package slipway runs Slipway as its users do: as the bundle's command line tool,
// and as the checkout's Dagger module.
package slipway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopDelay is how long a program whose context has ended may take to end in good
// order.
const stopDelay = time.Minute

// Deployment is a deployment and what its commands are given.
type Deployment struct {
	Name   string   // none is named if empty
	Bundle string   // directory, whose command line tool it is
	Digest string   // of the bundle; empty: as make bundle wrote it into SLIPWAY_BUNDLE_DIGEST and .env
	Lock   string   // file with the digests of a registry, in place of the bundle
	Flags  []string // of the module, before the function
	Root   string   // the checkout, with the module
	Dir    string   // where commands run; Root if empty
	Config string   // folder with configurations by name; one without any if empty
	Env    []string // NAME=value, besides the environment of the tests
}

// CLI is `slipway command`, ready to start. The end of ctx sends it SIGTERM.
func (d Deployment) CLI(ctx context.Context, command string, args ...string) *exec.Cmd {
	all := append([]string{command}, d.name()...)
	return d.program(ctx, filepath.Join(d.Bundle, "bin", "slipway"), append(append(all, d.origin()...), args...))
}

// Module is `dagger call function`, as CLI.
func (d Deployment) Module(ctx context.Context, function string, args ...string) *exec.Cmd {
	all := append([]string{"call", "--progress", "plain", "--mod", d.Root}, d.origin()...)
	all = append(append(append(all, d.Flags...), function), d.name()...)
	return d.program(ctx, "dagger", append(all, args...))
}

func (d Deployment) name() []string {
	if d.Name == "" {
		return nil
	}
	return []string{"--name", d.Name}
}

// origin is where what a run needs comes from.
func (d Deployment) origin() []string {
	if d.Lock != "" {
		return []string{"--lock", d.Lock}
	}
	if d.Digest != "" {
		return []string{"--bundle", d.Bundle, "--bundle-digest", d.Digest}
	}
	return []string{"--bundle", d.Bundle}
}

func (d Deployment) program(ctx context.Context, program string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	if cmd.Dir = d.Dir; cmd.Dir == "" {
		cmd.Dir = d.Root
	}
	config := d.Config
	if config == "" { // not the user's own
		config = filepath.Join(d.Root, "ci/test/e2e/testdata/no-deployments")
	}
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "DAGGER_NO_NAG=1", "DO_NOT_TRACK=1",
		"SLIPWAY_CONFIG_DIR="+config, "SLIPWAY_DEPLOYMENT=")
	cmd.Env = append(cmd.Env, d.Env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopDelay
	return cmd
}

// ExitError is a program that ended with another status than 0.
type ExitError struct {
	Command string
	Status  int
	Tail    string // of its output
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%s: exit status %d:\n%s", e.Command, e.Status, e.Tail)
}

// Run runs cmd to its end and lets log see what it prints. The error is an
// *ExitError, or says why it could not be run.
func Run(cmd *exec.Cmd, log io.Writer) error {
	var both bytes.Buffer
	cmd.Stdout = io.MultiWriter(&both, log)
	cmd.Stderr = cmd.Stdout
	return ended(cmd, cmd.Run(), both.String())
}

// Output runs cmd to its end and returns its standard output. The error is as
// Run's.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := ended(cmd, cmd.Run(), errs.String())
	return out.Bytes(), err
}

// ended turns err, which cmd.Run or cmd.Wait returned, into an *ExitError if the program ran. output
// is what it printed.
func ended(cmd *exec.Cmd, err error, output string) error {
	name := filepath.Base(cmd.Path)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &ExitError{name + " " + strings.Join(cmd.Args[1:], " "), exit.ExitCode(), Tail(output)}
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	return nil
}

// Tail is the end of a long output.
func Tail(s string) string {
	const most = 4000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}
