package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
)

// pauseTree has the processes with some pids and all that are below them stand still for the
// round's pause, or until the install has ended. It returns how many that were.
func (r *round) pauseTree(ctx context.Context, inst *running, roots ...int) (int, error) {
	f, err := freeze(roots...)
	if err != nil {
		return 0, err
	}
	r.wait(ctx, inst)
	return len(f), f.thaw()
}

// paused says what pauseTree has done.
func paused(what string, began time.Time, n int) string {
	return fmt.Sprintf("%s stood still for %s, %d processes", what, time.Since(began).Round(time.Second), n)
}

func (r *round) pauseConductor(ctx context.Context, inst *running) (string, error) {
	began := time.Now()
	n, err := r.pauseTree(ctx, inst, inst.process.Pid)
	return paused("the conductor", began, n), err
}

func (r *round) pauseStep(ctx context.Context, inst *running) (string, error) {
	for {
		p, err := r.find(ctx, inst, func(p process) bool { return p.isStep() && p.request().Deployment == r.Name })
		if err != nil {
			return "", err
		}
		began := time.Now()
		f, err := freeze(p.pid)
		if err != nil {
			return "", err
		}
		if len(f) == 0 {
			continue // it has just ended
		}
		r.wait(ctx, inst)
		return paused(p.args[2], began, len(f)), f.thaw()
	}
}

func (r *round) pauseHolder(ctx context.Context, inst *running) (string, error) {
	_, holder, err := r.holder(ctx, inst)
	if err != nil {
		return "", err
	}
	began := time.Now()
	n, err := r.pauseTree(ctx, inst, holder.pid)
	if err == nil && r.pause > lock.DefaultTTL+lock.DefaultBeat {
		err = stops(inst, began, noticed)
	}
	return paused("its holder", began, n), err
}

func (r *round) pauseEngine(ctx context.Context, inst *running) (string, error) {
	engine, err := r.engine(ctx)
	if err != nil {
		return "", err
	}
	began := time.Now()
	n, err := r.pauseTree(ctx, inst, engine)
	return paused("the engine", began, n), err
}

// contend begins another install while the first one works or, in about every other round, stands
// still. It fails unless one of them succeeds, and the other one does so before or after it, or
// ends because of the lock.
func (r *round) contend(ctx context.Context, inst *running) (string, error) {
	run, holder, err := r.holder(ctx, inst)
	if err != nil {
		return "", err
	}
	engine, err := r.engine(ctx)
	if err != nil {
		return "", err
	}
	what, roots := "the first works", []int{}
	if r.random.IntN(2) == 0 {
		what, roots = "its holder stands still", []int{holder.pid}
		if r.other != "" {
			what, roots = "its machine stands still", []int{inst.process.Pid, engine}
		}
	}
	thawed := make(chan error, 1)
	if len(roots) > 0 {
		f, err := freeze(roots...)
		if err != nil {
			return "", err
		}
		go func() {
			r.wait(ctx, inst)
			thawed <- f.thaw()
		}()
	} else {
		thawed <- nil
	}
	other, err := r.rival(ctx, inst, run, engine)
	first := inst.err
	if inst.unreleased() {
		first = nil // the lock expires
	}
	how, wrong := oneWorked(first, other.err)
	return fmt.Sprintf("another one while %s: %s", what, how), errors.Join(err, <-thawed, wrong)
}

// oneWorked tells how two installs ended, of which at most one at a time may have worked.
func oneWorked(first, second error) (string, error) {
	switch a, b := status(first), status(second); {
	case a == 0 && b == 0:
		return "it worked after the first", nil
	case a == 0 && b == int(fault.Locked):
		return "it did not get the lock", nil
	case a == int(fault.Locked) && b == 0:
		return "it took over", nil
	}
	return "", fmt.Errorf("neither of two installs gave way to the other: %w", errors.Join(first, second))
}
