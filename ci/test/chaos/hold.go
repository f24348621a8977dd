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
// time to live, a beat, and what it takes to stop the cluster and write the record.
const noticed = lock.DefaultTTL + lock.DefaultBeat + 20*time.Second

// killHolder ends what holds the lock of the install and begins another install. It returns
// once both have ended, and fails unless the first one stopped because it had lost the lock,
// the other one succeeded, and no step of it ran beside one of the first.
func (r *round) killHolder(ctx context.Context, inst *running) (string, error) {
	changes := func(p process) bool {
		return p.isStep() && p.args[2] != contract.PreflightStep().String() && p.request().Deployment == r.Name
	}
	step, err := r.find(ctx, inst, changes)
	if err != nil {
		return "", err
	}
	run := step.request().Run
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
		if err := beside(below, changes, run); err != nil && len(problems) == 0 {
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

// beside is an error if among the processes, of which changes are steps that change
// something, some are of a run and some are of another one.
func beside(all []process, changes func(process) bool, run string) error {
	var first, other string
	for _, p := range all {
		if !changes(p) {
			continue
		}
		if p.request().Run == run {
			first = p.args[2]
		} else {
			other = p.args[2]
		}
	}
	if first != "" && other != "" {
		return fmt.Errorf("%s of the second install runs beside %s of the first", other, first)
	}
	return nil
}
