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

// noticed is how long an install may take to end once what holds its lock is gone or stands
// still: the time to live, a beat, what steps have to end, and half a minute to stop the cluster
// and write the record on a machine that does other things, too.
const noticed = lock.DefaultTTL + lock.DefaultBeat + lock.DefaultGrace + 30*time.Second

// holder waits until the install works under the lock, and returns its run and what holds the
// lock for it.
func (r *round) holder(ctx context.Context, inst *running) (run string, p process, err error) {
	_, err = r.find(ctx, inst, func(p process) bool {
		run = r.runOf(p)
		return run != ""
	})
	if err == nil {
		p, err = r.find(ctx, inst, func(p process) bool { return p.holds(run) })
	}
	return run, p, err
}

// killHolder ends what holds the lock of the install and begins another install. It fails
// unless the first one stops because it has lost the lock, the other one succeeds, and no step of
// it runs beside one of the first.
func (r *round) killHolder(ctx context.Context, inst *running) (string, error) {
	run, holder, err := r.holder(ctx, inst)
	if err != nil {
		return "", err
	}
	engine, err := r.engine(ctx)
	if err == nil {
		err = holder.signal(syscall.SIGKILL)
	}
	if err != nil {
		return "", err
	}
	killed := time.Now()
	other, err := r.rival(ctx, inst, run, engine)
	lost := lostLock(inst.err, other.firstEnded.Sub(killed), noticed)
	if other.ended.Before(other.firstEnded) {
		err = errors.Join(err, errors.New("the second install ended before the first"))
	}
	if other.err != nil {
		err = errors.Join(err, fmt.Errorf("the second install: %w", other.err))
	}
	if err == nil || !errors.Is(lost, errGone) { // else the round is not to be played again
		err = errors.Join(err, lost)
	}
	return "killed its holder", err
}

// killHolderOnly ends what holds the lock of the install, which must stop by itself.
func (r *round) killHolderOnly(ctx context.Context, inst *running) (string, error) {
	_, holder, err := r.holder(ctx, inst)
	if err == nil {
		err = holder.signal(syscall.SIGKILL)
	}
	if err != nil {
		return "", err
	}
	return "killed its holder", stops(inst, time.Now(), noticed)
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

// rival is another install of the same deployment.
type rival struct {
	err        error
	firstEnded time.Time // the one that it contends with
	ended      time.Time
}

// rival begins another install while inst works for a run on the engine with a pid, and returns
// once both have ended. It fails if a step of the one runs beside one of the other on that engine,
// and if one of them goes on for longer than endLimit.
func (r *round) rival(ctx context.Context, inst *running, run string, engine int) (other rival, err error) {
	second := make(chan error, 1)
	limited, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	go func() { second <- r.installs(r.log+"-second.log", r.elsewhere().complete(limited)) }()
	var problem error
	late := limited.Done()
	for first, done := inst.gone, false; first != nil || !done; {
		select {
		case <-first:
			first, other.firstEnded = nil, time.Now()
		case other.err = <-second:
			done, other.ended = true, time.Now()
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
