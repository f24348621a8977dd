package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-sh/slipway/ci/test/facts"
	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline"
)

// standstill is for how long the API server is cut off.
const standstill = 30 * time.Second

// kinds are the ways to interrupt an install; each returns what it interrupted.
var kinds = map[string]func(*round, context.Context, *running) (string, error){ //nolint:gochecknoglobals // a table
	"conductor": (*round).killConductor,
	"step":      (*round).killStep,
	"hold":      (*round).killHolder,
	"engine":    (*round).killEngine,
	"api":       (*round).stopAPI,
}

// kindNames are those of all kinds, or of those that need no cluster of Slipway's own.
func kindNames(own bool) []string {
	names := []string{"conductor", "step", "hold", "engine"}
	if own {
		names = append(names, "api")
	}
	return names
}

// round is one disturbed install.
type round struct {
	*deployment
	kind      string
	moment    time.Duration // after the install's beginning
	log       string        // beginning of the files' names
	reference facts.Facts
}

// seen is what a round showed.
type seen struct {
	during string // what ran at the moment
	reused int    // steps that had succeeded and were not repeated
}

// running is an install that goes on.
type running struct {
	process *os.Process
	gone    chan struct{} // closed when it has ended
	err     error         // how; read after gone

	mu   sync.Mutex
	last string // the last line that names a step
}

// at is the last line in which the install named a step.
func (r *running) at() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// play runs the round.
func (r *round) play(ctx context.Context) (seen, error) {
	var s seen
	for {
		if err := r.run(r.log+".log", r.destroy(ctx)); err != nil {
			return s, err
		}
		during, err := r.disturb(ctx)
		s.during = during
		if !errors.Is(err, errGone) {
			if err != nil {
				return s, err
			}
			break
		}
		r.moment = r.moment * 3 / 4 // this install was faster than the reference
	}
	reused, err := r.resume(ctx)
	s.reused = reused
	if err != nil {
		return s, err
	}
	got, err := r.facts(ctx)
	if err != nil {
		return s, err
	}
	return s, r.reference.Compare(got)
}

// disturb installs and does the round's deed at its moment. It returns once the
// install has ended.
func (r *round) disturb(ctx context.Context) (string, error) {
	inst, err := r.start(ctx)
	if err != nil {
		return "", err
	}
	select {
	case <-time.After(r.moment):
	case <-inst.gone:
		return "", errGone
	case <-ctx.Done():
		<-inst.gone
		return "", context.Cause(ctx)
	}
	at := inst.at()
	what, err := kinds[r.kind](r, ctx, inst)
	if err != nil {
		_ = inst.process.Kill()
		<-inst.gone
		return at, err
	}
	<-inst.gone
	if r.kind == "api" && inst.err != nil {
		return at, fmt.Errorf("the install did not survive %s without the API server: %w", standstill, inst.err)
	}
	if inst.err == nil && r.kind != "api" {
		return at, errGone
	}
	return strings.TrimSpace(at + " " + what), nil
}

// start starts an install whose output goes to the round's log.
func (r *round) start(ctx context.Context) (*running, error) {
	log, err := os.OpenFile(r.log+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	cmd := r.install(ctx)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the install: %w", err)
	}
	inst := &running{process: cmd.Process, gone: make(chan struct{}), last: "before the first step"}
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			fmt.Fprintln(log, lines.Text())
			if f := strings.Fields(lines.Text()); len(f) > 0 && hasStep(r.reference, strings.TrimSuffix(f[0], ":")) {
				inst.mu.Lock()
				inst.last = strings.Join(f[:min(2, len(f))], " ")
				inst.mu.Unlock()
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	go func() {
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w, see %s", err, log.Name())
		}
		inst.err = err
		_ = in.Close()
		<-read
		_ = log.Close()
		close(inst.gone)
	}()
	return inst, nil
}

func (r *round) killConductor(_ context.Context, inst *running) (string, error) {
	return "", inst.process.Kill()
}

func (r *round) killStep(ctx context.Context, inst *running) (string, error) {
	p, err := r.find(ctx, inst, func(p process) bool { return p.isStep() && p.request().Deployment == r.Name })
	if err != nil {
		return "", err
	}
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return "", fmt.Errorf("kill process %d: %w", p.pid, err)
	}
	return "killed " + p.args[2], nil
}

// killEngine ends the engine's process; what it had started goes with it. The
// install then ends by itself.
func (r *round) killEngine(ctx context.Context, inst *running) (string, error) {
	engine, err := r.engine(ctx)
	if err != nil {
		return "", err
	}
	if err := syscall.Kill(engine, syscall.SIGKILL); err != nil {
		return "", fmt.Errorf("kill the engine, process %d: %w", engine, err)
	}
	var late error
	select {
	case <-inst.gone:
	case <-time.After(time.Minute):
		late = errors.New("the install goes on a minute after its engine was killed")
	}
	log, err := os.OpenFile(r.log+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return "", fmt.Errorf("open the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	return "", errors.Join(late, r.startEngine(ctx, log))
}

// stopAPI lets the API server stand still, with its connections open.
func (r *round) stopAPI(ctx context.Context, inst *running) (string, error) {
	p, err := r.find(ctx, inst, process.isAPIServer)
	if err != nil {
		return "", err
	}
	if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
		return "", fmt.Errorf("stop process %d: %w", p.pid, err)
	}
	select {
	case <-time.After(standstill):
	case <-inst.gone:
	case <-ctx.Done():
	}
	if err := syscall.Kill(p.pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return "", fmt.Errorf("let process %d go on: %w", p.pid, err)
	}
	return "", nil
}

// resume installs again and returns how many steps were reused. One that had
// succeeded and ran again is an error, unless it says that its result did not
// hold any more.
func (r *round) resume(ctx context.Context) (int, error) {
	before, err := r.succeeded(ctx, r.log+"-interrupted")
	if err != nil {
		return 0, err
	}
	if err := r.run(r.log+".log", r.complete(ctx)); err != nil {
		return 0, fmt.Errorf("the install does not continue: %w", err)
	}
	dir := r.log + "-continued"
	rec, err := r.report(ctx, dir)
	if err != nil {
		return 0, err
	}
	reused := 0
	var errs []error
	for _, s := range rec.Steps {
		switch {
		case !before[s.ID()]:
		case s.Status == pipeline.Reused:
			reused++
		default:
			log, err := os.ReadFile(filepath.Join(dir, "steps", s.Stage+"."+s.Step, "log.txt"))
			if err != nil {
				errs = append(errs, err)
			} else if !strings.Contains(string(log), notHeld) {
				errs = append(errs, fmt.Errorf("%s had succeeded and is %s the second time", s.ID(), s.Status))
			}
		}
	}
	return reused, errors.Join(errs...)
}

// notHeld is what a step's log says of an earlier result that did not verify.
const notHeld = "does not hold any more"

// succeeded are the steps of the last run that left a success behind; that run
// may have had no time to leave anything.
func (r *round) succeeded(ctx context.Context, dir string) (map[string]bool, error) {
	out := map[string]bool{}
	err := r.run(r.log+".log", r.command(ctx, "report", "--output", dir))
	if exit, ok := errors.AsType[*slipway.ExitError](err); ok && exit.Status == 2 && strings.Contains(exit.Tail, "DEP-001") {
		return out, nil // killed before it had written anything
	}
	if err != nil {
		return nil, err
	}
	last, err := record(dir)
	if err != nil {
		return nil, err
	}
	if last.Workflow == config.Destroy { // the install was killed before it had a record of its own
		return out, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "steps", "*", "result.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a step's result: %w", err)
		}
		var result struct {
			Status string `json:"status"`
		}
		if err := json.Unmarshal(text, &result); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		id := strings.Replace(filepath.Base(filepath.Dir(file)), ".", "/", 1)
		out[id] = result.Status == "succeeded" || result.Status == "reused"
	}
	return out, nil
}
