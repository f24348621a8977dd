package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/fault"
)

// Commands runs the commands of a cell, each as a process, and keeps their output.
type Commands struct {
	Program string   // path of slipway
	Given   []string // flags of every command: where images, state and secrets come from
	// Keep are the flags that leave a cell's cluster running for the next command.
	Keep []string
	// Configuration returns the YAML of a cell's deployment.
	Configuration func(Cell) []byte
	Inputs        func(Cell) string // the digest of what decides a cell's result besides the cell
	Results       Results
	Say           func(string) // one line of progress at a time
	// AtOnce is closed when commands are no longer waited for, and killed; nil: never.
	AtOnce <-chan struct{}
}

// The limits of a cell's commands.
const (
	// stopDelay is how long a command that is interrupted may take to end in good order.
	stopDelay = 5 * time.Minute
	// mostKills is more than an upgrade has steps.
	mostKills = 100
	// afterKill is how long a command waits for the lock of a killed one.
	afterKill = "1m"
)

type cell struct {
	*Commands
	what   Cell
	dir    string
	result Result
	// reproduced says that slipway reproduce can replay the run of the last command.
	reproduced bool
}

// Do runs a cell, unless it has passed before. It is safe for concurrent use.
func (m *Commands) Do(ctx context.Context, what Cell) Result {
	c := &cell{Commands: m, what: what, result: Result{Cell: what, Deployment: what.Deployment(m.Inputs(what)), Outcome: Upgraded, Began: time.Now().UTC()}}
	if before, ok := m.Results.earlier(c.result.Deployment); ok {
		return before
	}
	var err error
	if c.dir, err = m.Results.begin(c.result.Deployment); err == nil {
		err = os.WriteFile(filepath.Join(c.dir, "slipway.yaml"), m.Configuration(what), 0o600)
	}
	if err != nil {
		c.fails(err.Error())
	} else {
		c.all(ctx)
	}
	if ctx.Err() != nil {
		c.result.Outcome, c.result.Code, c.result.Reason = Cancelled, "", ""
	}
	if err := m.Results.keep(c.result); err != nil {
		c.fails("keep the result: " + err.Error())
	}
	return c.result
}

var (
	stepBegins = regexp.MustCompile(`^([a-z0-9-]+/[a-z0-9-]+): running$`)
	legBegins  = regexp.MustCompile(`^upgrade ([0-9]+) of ([0-9]+): to release `) // one of several upgrades
)

// process runs a command, adds its outcome to p, and returns its result: nothing if it was killed. It kills the
// command when kill, if not nil, returns true for a step that begins.
func (c *cell) process(ctx context.Context, p *Phase, kill func(step string) bool, name string, args []string) (out console.Result, err error) {
	all := append([]string{name, "--config", filepath.Join(c.dir, "slipway.yaml"), "--name", c.result.Deployment}, append(args, c.Given...)...)
	words := []string{filepath.Base(c.Program)}
	for _, a := range all {
		words = append(words, fault.Quote(a))
	}
	p.Command = strings.Join(words, " ")
	log, err := os.OpenFile(filepath.Join(c.dir, p.Name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return out, err
	}
	defer func() { _ = log.Close() }()
	file := filepath.Join(c.dir, "command.json")
	if err := os.RemoveAll(file); err != nil {
		return out, err
	}
	cmd := exec.CommandContext(ctx, c.Program, all...)
	cmd.SysProcAttr = daggercli.Detached() // so that a terminal's interrupt comes once, from here
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(os.Interrupt); err == nil || errors.Is(err, os.ErrProcessDone) {
			return err
		}
		return cmd.Process.Kill() // where there are no signals
	}
	cmd.WaitDelay = stopDelay
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "SLIPWAY_DEPLOYMENT=", console.EnvResult+"="+file)
	cmd.Stdout, cmd.Stderr = log, log
	if kill != nil {
		cmd.Stderr = io.MultiWriter(log, &console.Lines{Do: steps(func(step string) {
			if kill(step) {
				p.Killed++
				c.Say(fmt.Sprintf("%s: killed when %s began", c.what, step))
				_ = cmd.Process.Kill() // it may have ended
			}
		})})
	}
	c.Say(fmt.Sprintf("%s: %s", c.what, p.Name))
	before := p.Killed
	began := time.Now()
	if err = cmd.Start(); err == nil {
		done := make(chan struct{})
		go func() {
			select {
			case <-c.AtOnce:
				_ = cmd.Process.Kill() // it may have ended
			case <-done:
			}
		}()
		err = cmd.Wait()
		close(done)
	}
	p.Took += time.Since(began)
	p.Exit = cmd.ProcessState.ExitCode()
	if _, exited := errors.AsType[*exec.ExitError](err); exited || p.Killed > before {
		err = nil
	}
	if ctx.Err() != nil {
		p.Exit = int(fault.Cancelled)
		err = nil
	}
	if text, unread := bounded.File(file, bounded.Generated); unread == nil && err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// beforeAnother follows a step of an upgrade that is not the last of several: each has such a step.
const beforeAnother = " before another upgrade"

// steps returns a function that reads the output of an upgrade and calls begins with each step.
func steps(begins func(step string)) func(line string) {
	later := 0 // upgrades after the running one
	return func(line string) {
		if m := legBegins.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			of, _ := strconv.Atoi(m[2])
			later = of - n
		}
		if m := stepBegins.FindStringSubmatch(line); m != nil {
			begins(m[1] + strings.Repeat(beforeAnother, later))
		}
	}
}
