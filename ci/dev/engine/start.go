package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/debian"
	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// forwarding tells whether this machine passes on what is for others: "1" for yes. The plugin
// bridge, which connects the engine's containers, sees to it.
const forwarding = "/proc/sys/net/ipv4/ip_forward"

const startTimeout = 90 * time.Second

func (c *control) start(ctx context.Context, own bool) error {
	if r, ok := c.running(ctx); ok {
		if c.config != nil {
			return &fault.Fault{Class: fault.Preflight, Code: codeStart, Op: "start an engine with another engine.json", Fix: "run engine stop, then the same command again",
				Err: fmt.Errorf("process %d is one already", r.PID)}
		}
		return c.reportRunning(ctx, r)
	}
	host := os.Getenv(envRunner)
	if c.foreign(host) && !own {
		cli, err := c.buildCLI(ctx)
		if err != nil {
			return err
		}
		err = probe(ctx, host, cli)
		if err == nil {
			c.logf("engine: %s answers; using it", host)
			return c.linkCLI(cli)
		}
		c.logf("engine: %s=%s does not answer (%v); looking for another", envRunner, host, err)
	}
	if !own && dockerResponds(ctx) {
		cli, err := c.buildCLI(ctx)
		if err != nil {
			return err
		}
		return c.startInDocker(ctx, cli)
	}
	if err := c.mayRun(runtime.GOOS, os.Geteuid()); err != nil {
		return err
	}
	c.store.Waiting = func() { c.logf("engine: another process starts it already; waiting") }
	release, err := c.store.Lock(ctx, build.Key{Name: "engine"})
	if err != nil {
		return err
	}
	defer release()
	if r, lives, err := c.recorded(); err == nil && lives {
		// Its start may have been killed while it waited. A second engine would use the same state.
		err := c.connect(ctx, func() bool { return !r.alive() })
		switch {
		case err == nil:
			return c.reportRunning(ctx, r)
		case ctx.Err() != nil:
			return err
		case r.alive():
			return &fault.Fault{Class: fault.Preflight, Code: codeStart, Op: "start an engine", Fix: "run: make engine-stop engine",
				Err: fmt.Errorf("process %d runs and does not answer at %s: %w", r.PID, c.paths.host(), err)}
		}
	}
	p := build.NewReporter(os.Stderr, tasks)
	parts, err := c.buildEngine(ctx, p)
	if err != nil {
		return err
	}
	if b, err := os.ReadFile(forwarding); err == nil && string(bytes.TrimSpace(b)) == "0" {
		c.logf("engine: turns net.ipv4.ip_forward of this machine on, which its containers need to reach others; nothing turns it off again")
	}
	if err := c.task(p, "engine "+daggerVersion, "starting", func() (bool, error) { return false, c.launch(ctx, parts) }); err != nil {
		return err
	}
	p.Finish("engine " + daggerVersion + " answers at " + c.paths.host())
	return c.linkCLI(parts.cli)
}

// configureDocker writes the file with which the dagger CLI starts an engine that keeps cache
// volumes. One that is there stays; if it does not see to that, it is said what does.
func (c *control) configureDocker(file string) error {
	op := "configure the engine that Docker runs"
	switch text, err := os.ReadFile(file); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("%s: %w", op, err)
	case bytes.Contains(text, []byte(daggercli.EngineFilter)): // whoever wrote it has thought of them
		return nil
	default:
		c.logf("engine: warning: %s exists already. With it, an engine may remove cache volumes, which contain deployments. Let each policy in gc.policies leave out cache volumes, with this one as the last, or the only one, then run make engine-stop engine: %s", file, daggercli.EnginePolicy)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if err := atomicfile.Write(file, []byte(daggercli.EngineConfig+"\n"), 0o644); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	c.logf("engine: wrote %s, with which an engine keeps its cache volumes, where deployments are; one that runs already is to be started anew (make engine-stop engine)", file)
	return nil
}

// mayRun refuses what cannot work for a user of a system, before anything is
// built.
func (c *control) mayRun(system string, user int) error {
	op := "start an engine"
	if system != "linux" {
		return &fault.Fault{Class: fault.Preflight, Code: codeRoot, Op: op, Err: errors.New("an engine of our own runs on Linux only; this is " + system),
			Fix: "start Docker, then run make engine again"}
	}
	if user != 0 {
		return &fault.Fault{Class: fault.Preflight, Code: codeRoot, Op: op,
			Err: errors.New("no engine and no Docker daemon answers, and only root can run an engine"),
			Fix: "run make engine as root (sudo -E make engine), or start Docker, or set " + envRunner + " to an engine that answers"}
	}
	if len(c.paths.socket) > maxSocket {
		return &fault.Fault{Class: fault.Preflight, Code: debian.CodeBuild, Op: op, Err: fmt.Errorf("the path of the socket is longer than %d bytes: %s", maxSocket, c.paths.socket),
			Fix: "set SLIPWAY_CACHE to a folder with a shorter path"}
	}
	return nil
}

// recorded is the record of our own engine, zero without one, and whether its process lives.
func (c *control) recorded() (r record, lives bool, err error) {
	r, err = readRecord(c.paths.pid)
	return r, r.alive(), err
}

// running is the record of our own engine, when it runs and answers.
func (c *control) running(ctx context.Context) (record, bool) {
	r, lives, err := c.recorded()
	return r, err == nil && lives && dial(ctx, "unix", c.paths.socket) == nil
}

// connect dials an engine until it answers, for as long as one may take to start, or
// until it has ended.
func (c *control) connect(ctx context.Context, ended func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer within %s", c.timeout))
	defer cancel()
	seen := errors.New("nothing yet")
	for {
		err := dial(ctx, "unix", c.paths.socket)
		if err == nil || ended() {
			return err
		}
		if !errors.Is(err, context.DeadlineExceeded) { // that is ctx's
			seen = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last seen: %w", c.paths.host(), context.Cause(ctx), seen)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c *control) reportRunning(ctx context.Context, r record) error {
	if r.Version != daggerVersion {
		return &fault.Fault{Class: fault.Preflight, Code: codeStart, Op: "start an engine", Fix: "run: make engine-stop engine",
			Err: fmt.Errorf("process %d is an engine of version %q, not %s", r.PID, r.Version, daggerVersion)}
	}
	c.logf("engine: process %d answers at %s, since %s", r.PID, c.paths.host(), r.Began.Local().Format(time.DateTime))
	cli := r.CLI
	if _, err := os.Stat(cli); err != nil {
		if cli, err = c.buildCLI(ctx); err != nil {
			return err
		}
	}
	return c.linkCLI(cli)
}

func (c *control) cliLink() string { return filepath.Join(c.checkout, "bin", "dagger") }

func (c *control) linked() bool {
	info, err := os.Stat(c.cliLink()) // follows the link
	return err == nil && info.Mode().IsRegular()
}

// linkCLI makes bin/dagger of the checkout lead to cli.
func (c *control) linkCLI(cli string) error {
	link := c.cliLink()
	if target, err := os.Readlink(link); cli == link || err == nil && target == cli {
		return nil // it was found there, by PATH, or leads there already
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return fmt.Errorf("link the dagger CLI: %w", err)
	}
	if err := build.Link(link, cli); err != nil {
		return fmt.Errorf("link the dagger CLI: %w", err)
	}
	return nil
}
