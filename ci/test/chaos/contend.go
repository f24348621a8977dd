package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/contract"
)

// noticed is how long an install may take to end once what holds its lock is gone or stopped: the
// time to live, a beat, what steps have to end, and half a minute to stop the cluster and write the
// record on a machine that does other things, too.
const noticed = lock.DefaultTTL + lock.DefaultBeat + lock.DefaultGrace + 30*time.Second

// holder waits until the install works under the lock, and returns its run, what holds the lock for
// it, and the pid of its engine.
func (r *round) holder(ctx context.Context, inst *running) (run string, p process, engine int, err error) {
	if engine, err = r.engine(ctx); err != nil {
		return "", p, 0, err
	}
	_, err = r.find(ctx, inst, func(p process) bool {
		run = r.runOf(p)
		return run != ""
	})
	if err == nil {
		p, err = r.find(ctx, inst, func(p process) bool { return p.holds(run) })
	}
	return run, p, engine, err
}

// contend begins another install while the first one works.
func (r *round) contend(ctx context.Context, inst *running) (string, error) {
	run, _, engine, err := r.holder(ctx, inst)
	if err != nil {
		return "", err
	}
	other, err := r.rival(ctx, inst, run, engine)
	how, wrong := oneWorked(inst, other)
	return "another one while it works: " + how, errors.Join(err, wrong)
}

// contendKilled ends what holds the lock of the install, and begins another one, which has to
// succeed.
func (r *round) contendKilled(ctx context.Context, inst *running) (string, error) {
	run, holder, engine, err := r.holder(ctx, inst)
	if err == nil {
		err = holder.signal(syscall.SIGKILL)
	}
	if err != nil {
		return "", err
	}
	killed := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- stops(inst, killed, noticed) }()
	other, err := r.rival(ctx, inst, run, engine)
	if other != nil {
		err = errors.Join(err, fmt.Errorf("the second install: %w", other))
	}
	if lost := <-ended; err == nil || !errors.Is(lost, errGone) { // else the round is not to be played again
		err = errors.Join(err, lost)
	}
	return "another one after its holder was killed", err
}

// contendStopped begins another install while what holds the lock of the first is stopped; with
// two engines, its whole machine.
func (r *round) contendStopped(ctx context.Context, inst *running) (string, error) {
	run, holder, engine, err := r.holder(ctx, inst)
	if err != nil {
		return "", err
	}
	what, roots := "its holder", []int{holder.pid}
	if r.other != "" {
		what, roots = "its machine", []int{inst.process.Pid, engine}
	}
	f, err := freeze(roots...)
	if err != nil {
		return "", err
	}
	thawed := make(chan error, 1)
	go func() {
		r.wait(ctx, inst)
		thawed <- f.thaw()
	}()
	other, err := r.rival(ctx, inst, run, engine)
	how, wrong := oneWorked(inst, other)
	return fmt.Sprintf("another one while %s is stopped: %s", what, how), errors.Join(err, <-thawed, wrong)
}

// oneWorked tells how two installs ended, of which at most one at a time may have worked.
func oneWorked(inst *running, other error) (string, error) {
	first := inst.err
	if inst.unreleased() {
		first = nil // the lock expires
	}
	switch a, b := status(first), status(other); {
	case a == 0 && b == 0:
		return "it worked after the first", nil
	case a == 0 && b == int(fault.Locked):
		return "it did not get the lock", nil
	case a == int(fault.Locked) && b == 0:
		return "it took over", nil
	}
	return "", fmt.Errorf("neither of two installs gave way to the other: %w", errors.Join(first, other))
}

// stops waits until an install has stopped because it had lost the lock at a moment.
func stops(inst *running, lost time.Time, limit time.Duration) error {
	select {
	case <-inst.gone:
	case <-time.After(2 * limit):
		return fmt.Errorf("the install goes on %s after it has lost the lock", 2*limit)
	}
	took := time.Since(lost)
	if inst.unreleased() && took <= limit {
		return nil // it was done before that had to be noticed
	}
	return lostLock(inst.err, took, limit)
}

// rival begins another install while inst works for a run on the engine with a pid, and returns how
// it ended once both have. problem says that a step of the one ran beside one of the other on that
// engine, or that one of them went on for longer than endLimit.
func (r *round) rival(ctx context.Context, inst *running, run string, engine int) (other, problem error) {
	second := make(chan error, 1)
	limited, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	go func() { second <- r.installs(r.log+"-second.log", r.elsewhere().complete(limited)) }()
	late := limited.Done()
	for first, done := inst.gone, false; first != nil || !done; {
		select {
		case <-first:
			first = nil
		case other = <-second:
			done = true
		case <-late:
			late, problem = nil, errors.Join(problem, fmt.Errorf("two installs contend for longer than %s", endLimit))
			_ = inst.process.Kill()
		case <-time.After(50 * time.Millisecond):
			if problem == nil {
				problem = r.beside(engine, run)
			}
		}
	}
	return other, problem
}

// status is the exit status of an install that has ended with err; -1 if it has none.
func status(err error) int {
	if err == nil {
		return int(fault.OK)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if exit, ok := errors.AsType[*slipway.ExitError](err); ok {
		return exit.Status
	}
	return -1
}

// lostLock is nil if an install ended as it must, in time, when it lost the lock, and errGone
// if it succeeded before that had to be noticed.
func lostLock(err error, took, limit time.Duration) error {
	switch {
	case err == nil && took <= limit:
		return errGone
	case err == nil:
		return fmt.Errorf("the install succeeded %s after it had lost the lock", took.Round(time.Second))
	case status(err) != int(fault.Locked):
		return fmt.Errorf("the install ended otherwise than for its lock: %w", err)
	case took > limit:
		return fmt.Errorf("the install went on for %s without the lock", took.Round(time.Second))
	}
	return nil
}

// runOf is the run of the deployment for which a process changes something, as a step; empty
// for any other process.
func (r *round) runOf(p process) string {
	if !p.isStep() || p.args[2] == contract.PreflightStep().String() {
		return ""
	}
	req := p.request() // once: it may end meanwhile
	if req.Deployment != r.Name {
		return ""
	}
	return req.Run
}

// beside is an error if of the processes below the engine some change something for a run and
// some for another one.
func (r *round) beside(engine int, run string) error {
	all, err := trees(engine)
	if err != nil {
		return fmt.Errorf("look at the engine's processes: %w", err)
	}
	var first, other string
	for _, p := range all {
		switch of := r.runOf(p); of {
		case "":
		case run:
			first = p.args[2]
		default:
			other = p.args[2]
		}
	}
	if first != "" && other != "" {
		return fmt.Errorf("%s of the second install runs beside %s of the first", other, first)
	}
	return nil
}
