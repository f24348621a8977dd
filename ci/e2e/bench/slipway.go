package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopDelay is how long an interrupted program may take to end in good order.
const stopDelay = time.Minute

// module is Slipway as its Dagger module: `dagger call …`.
type module struct {
	dir    string // the checkout
	bundle string
	log    io.Writer
}

// Install is `dagger call install`; it never repeats a check that it remembers.
func (m *module) Install(ctx context.Context, name string, _ bool) error {
	return m.call(ctx, "install", "--name", name)
}

// Remove is `dagger call destroy`.
func (m *module) Remove(ctx context.Context, name string) error {
	return m.call(ctx, "destroy", "--name", name)
}

func (m *module) call(ctx context.Context, args ...string) error {
	return execute(ctx, m.dir, m.log, "dagger", append([]string{"call", "--progress", "plain", "--bundle", m.bundle}, args...)...)
}

// cli is Slipway as its command line tool, the bundle's.
type cli struct {
	dir    string
	bundle string
	log    io.Writer
}

// Install is `slipway install`.
func (c *cli) Install(ctx context.Context, name string, _ bool) error {
	return c.run(ctx, "install", "--name", name)
}

// Remove is `slipway destroy`.
func (c *cli) Remove(ctx context.Context, name string) error {
	return c.run(ctx, "destroy", "--name", name)
}

func (c *cli) run(ctx context.Context, args ...string) error {
	return execute(ctx, c.dir, c.log, filepath.Join(c.bundle, "bin", "slipway"), append(args, "--bundle", c.bundle)...)
}

// execute runs a program to its end and lets log see its output. The error shows
// the end of it.
func execute(ctx context.Context, dir string, log io.Writer, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "DAGGER_NO_NAG=1", "DO_NOT_TRACK=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopDelay
	var both bytes.Buffer
	cmd.Stdout = io.MultiWriter(&both, log)
	cmd.Stderr = cmd.Stdout
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%s %s: exit status %d:\n%s", filepath.Base(program), args, exit.ExitCode(), tail(both.String()))
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	return nil
}

// tail is the end of a long output.
func tail(s string) string {
	const most = 4000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}
