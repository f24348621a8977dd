package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/fault"
)

func (c *control) stop(ctx context.Context) error {
	r, lives, err := c.recorded()
	if lives && os.Geteuid() != 0 {
		return &fault.Fault{Class: fault.Preflight, Code: codeRoot, Op: "stop the engine", Err: fmt.Errorf("process %d belongs to root", r.PID),
			Fix: "run make engine-stop as root (sudo -E make engine-stop)"}
	}
	if r.PID != 0 {
		c.store.Waiting = func() { c.logf("engine: another process starts or stops it; waiting") }
		release, lockErr := c.store.Lock(ctx, build.Key{Name: "engine"})
		if lockErr != nil {
			return lockErr
		}
		defer release()
		r, lives, err = c.recorded() // as whoever had the lock left it
	}
	if err != nil {
		return &fault.Fault{Class: fault.Preflight, Code: codeStart, Op: "stop the engine", Err: err,
			Fix: "look whether a dagger-engine process runs, end it, and remove " + c.paths.pid}
	}
	if !lives {
		if err := os.RemoveAll(c.paths.pid); err != nil {
			return err
		}
		return c.stopInDocker(ctx)
	}
	if err := c.end(r); err != nil {
		return &fault.Fault{Class: fault.Preflight, Code: codeStart, Op: "stop the engine", Err: err,
			Fix: fmt.Sprintf("see what holds process %d up in %s, then run make engine-stop again", r.PID, c.paths.log)}
	}
	if err := os.RemoveAll(c.paths.pid); err != nil {
		return err
	}
	c.logf("engine: process %d has ended", r.PID)
	return nil
}

func (c *control) env(ctx context.Context) error {
	host := os.Getenv(envRunner)
	if c.foreign(host) {
		cli := c.cliLink()
		if !c.linked() {
			cli = cliOnPath(ctx)
		}
		if err := probe(ctx, host, cli); err != nil {
			return &fault.Fault{Class: fault.Preflight, Code: codeNone, Op: "find an engine", Err: fmt.Errorf("%s=%s does not answer: %w", envRunner, host, err),
				Fix: "run: unset " + envRunner + " && make engine"}
		}
	} else if _, ok := c.running(ctx); ok {
		host = c.paths.host()
	} else {
		image, err := imageInDocker(ctx)
		if err != nil {
			return &fault.Fault{Class: fault.Preflight, Code: codeNone, Op: "find an engine", Err: fmt.Errorf("none answers: %w", err), Fix: "run make engine"}
		}
		host = dockerHost(image)
	}
	if !c.linked() {
		return &fault.Fault{Class: fault.Preflight, Code: codeNone, Op: "find the dagger CLI", Err: fmt.Errorf("%s is not there", c.cliLink()), Fix: "run make engine"}
	}
	bin := strings.TrimSuffix(c.cliLink(), "/dagger")
	for _, line := range envLines(host, c.cliLink(), bin, os.Getenv("PATH")) {
		fmt.Fprintln(c.stdout, line)
	}
	return nil
}

func envLines(host, cli, bin, path string) []string {
	lines := []string{"export " + envRunner + "=" + quote(host), "export " + envCLI + "=" + quote(cli), "export DO_NOT_TRACK=1", "export DAGGER_NO_NAG=1"}
	if !strings.Contains(":"+path+":", ":"+bin+":") {
		lines = append(lines, "export PATH="+quote(bin)+`:"$PATH"`)
	}
	return lines
}

// quote makes one word of a shell command of s.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
