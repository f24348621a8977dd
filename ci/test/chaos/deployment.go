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
	"strconv"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// deployment is what the rounds install and remove, with the bundle's own
// command line tool.
type deployment struct {
	slipway.Deployment
	config   string // the configuration's file; empty for none
	own      bool   // the cluster is one that Slipway runs on the engine
	platform string // directory of the platform release; empty for the configuration's
	bucket   *bucket
	host     string // address of the engine; empty for that of the environment
	other    string // address of another engine; empty for none
}

// command is `slipway command` with the configuration, ready to start.
func (d *deployment) command(ctx context.Context, command string, args ...string) *exec.Cmd {
	if d.bucket != nil {
		args = append(d.bucket.flags(), args...)
	}
	if d.config != "" {
		args = append([]string{"--config", d.config}, args...)
	}
	cmd := d.CLI(ctx, command, args...)
	if d.host != "" {
		cmd.Env = append(cmd.Env, "_EXPERIMENTAL_DAGGER_RUNNER_HOST="+d.host)
	}
	return cmd
}

// elsewhere is the deployment as somebody on the other engine works on it, if there is one.
func (d *deployment) elsewhere() *deployment {
	e := *d
	e.host = d.other
	return &e
}

// install is `slipway install`, ready to start.
func (d *deployment) install(ctx context.Context, args ...string) *exec.Cmd {
	args = append(args, "--yes")
	if d.platform != "" {
		args = append(args, "--platform", d.platform)
	}
	return d.command(ctx, "install", args...)
}

// complete is install for a cluster that is looked at afterwards: one of Slipway's
// keeps running until it is removed.
func (d *deployment) complete(ctx context.Context, args ...string) *exec.Cmd {
	if d.own {
		args = append(args, "--keep-cluster")
	}
	return d.install(ctx, args...)
}

// destroy is `slipway destroy`, ready to start.
func (d *deployment) destroy(ctx context.Context) *exec.Cmd {
	return d.command(ctx, "destroy", "--yes", "--ignore-not-found")
}

// run runs a command to its end and appends what it prints to the file log, and to others.
func (d *deployment) run(log string, cmd *exec.Cmd, others ...io.Writer) error {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	fmt.Fprintf(f, "== slipway %s\n", strings.Join(cmd.Args[1:], " "))
	err = slipway.Run(cmd, io.MultiWriter(append(others, f)...))
	return errors.Join(err, f.Close())
}

// undisturbed installs from nothing and returns what there is then.
func (d *deployment) undisturbed(ctx context.Context, log string) (ref reference, err error) {
	began := time.Now()
	// An install of two minutes or more may have imported images first: it is repeated once.
	for n := 0; n == 0 || n == 1 && ref.took > 2*time.Minute; n++ {
		if err := d.run(log, d.destroy(ctx)); err != nil {
			return ref, err
		}
		at := time.Now()
		if err := d.run(log, d.complete(ctx)); err != nil {
			return ref, err
		}
		ref.took = time.Since(at)
	}
	if ref.facts, err = d.facts(ctx); err != nil {
		return ref, err
	}
	ref.journaled, err = d.journaled(ctx, began)
	return ref, err
}

// report copies the last run's directory to dir and returns its record.
func (d *deployment) report(ctx context.Context, dir string) (*report.Run, error) {
	if _, err := slipway.Output(d.command(ctx, "report", "--out", dir)); err != nil {
		return nil, err
	}
	return record(dir)
}

// record is the one in a report's directory.
func record(dir string) (*report.Run, error) {
	text, err := os.ReadFile(filepath.Join(dir, report.RecordFile))
	if err != nil {
		return nil, fmt.Errorf("read the run's record: %w", err)
	}
	return report.Decode(text)
}

// engine is the pid of the Dagger engine that `make engine` started.
func (d *deployment) engine(ctx context.Context) (int, error) {
	out, err := exec.CommandContext(ctx, "go", "run", "-C", filepath.Join(d.Root, "ci/dev/engine"), ".", "status").Output()
	if err != nil {
		return 0, fmt.Errorf("find the engine, which make engine starts: %w", err)
	}
	rest, ok := strings.CutPrefix(string(out), "process ")
	pid, err := strconv.Atoi(strings.SplitN(rest, " ", 2)[0])
	if !ok || err != nil {
		return 0, fmt.Errorf("only an engine that make engine started can be disturbed; this one says: %s", bytes.TrimSpace(out))
	}
	return pid, nil
}

// startEngine starts it again.
func (d *deployment) startEngine(ctx context.Context, log io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", "run", "-C", filepath.Join(d.Root, "ci/dev/engine"), ".", "start")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start the engine again: %w", err)
	}
	return nil
}
