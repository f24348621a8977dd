package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/contract"
)

// noticed is how long an install may take to end once what holds its lock was killed: the
// time to live, a beat, and what it takes to end the steps, stop the cluster and write the
// record.
const noticed = lock.DefaultTTL + lock.DefaultBeat + lock.DefaultGrace

// killHolder ends what holds the lock of the install and begins another install. It returns
// once both have ended, and fails unless the first one stopped because it had lost the lock,
// the other one succeeded, and no step of it ran beside one of the first.
func (r *round) killHolder(ctx context.Context, inst *running) (string, error) {
	var run string
	_, err := r.find(ctx, inst, func(p process) bool {
		run = r.runOf(p)
		return run != ""
	})
	if err != nil {
		return "", err
	}
	holder, err := r.find(ctx, inst, func(p process) bool { return p.holds(run) })
	if err != nil {
		return "", err
	}
	if err := syscall.Kill(holder.pid, syscall.SIGKILL); err != nil {
		return "", fmt.Errorf("kill process %d: %w", holder.pid, err)
	}
	killed := time.Now()
	second := make(chan error, 1)
	go func() { second <- r.run(r.log+"-second.log", r.complete(ctx)) }()

	engine, err := r.engine(ctx)
	if err != nil {
		return "", errors.Join(err, <-second)
	}
	var problems []error
	gone := inst.gone
	for {
		select {
		case <-gone:
			gone = nil
			problems = append(problems, lostLock(inst.err, time.Since(killed)))
			continue
		case err := <-second:
			if gone != nil {
				problems = append(problems, errors.New("the second install ended before the first"))
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("the second install: %w", err))
			}
			return "killed its holder", errors.Join(problems...)
		case <-time.After(50 * time.Millisecond):
		}
		below, err := descendants(engine)
		if err != nil {
			problems = append(problems, fmt.Errorf("look at the engine's processes: %w", err))
			continue
		}
		if err := r.beside(below, run); err != nil && len(problems) == 0 {
			problems = append(problems, err)
		}
	}
}

// lostLock is nil if an install ended as it must, in time, when it lost the lock, and errGone
// if it was over before that could be noticed.
func lostLock(err error, took time.Duration) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return errGone
	case !ok || exit.ExitCode() != int(fault.Locked):
		return fmt.Errorf("the first install ended otherwise than for its lock: %w", err)
	case took > noticed:
		return fmt.Errorf("the first install went on for %s without the lock", took.Round(time.Second))
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

// beside is an error if among the processes some change something for a run and some for
// another one.
func (r *round) beside(all []process, run string) error {
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
