package main

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-sh/slipway/pipeline/lock"
)

// stopTree stops the process with a pid and all that are below it for the round's pause, or
// until the install has ended, and says so.
func (r *round) stopTree(ctx context.Context, inst *running, what string, root int) (string, error) {
	began := time.Now()
	f, err := freeze(root)
	if err != nil {
		return "", err
	}
	r.wait(ctx, inst)
	return fmt.Sprintf("%s was stopped for %s, %d processes", what, time.Since(began).Round(time.Second), len(f)), f.thaw()
}

func (r *round) stopConductor(ctx context.Context, inst *running) (string, error) {
	return r.stopTree(ctx, inst, "the conductor", inst.process.Pid)
}

func (r *round) stopHolder(ctx context.Context, inst *running) (string, error) {
	_, holder, _, err := r.holder(ctx, inst)
	if err != nil {
		return "", err
	}
	began := time.Now()
	what, err := r.stopTree(ctx, inst, "its holder", holder.pid)
	if err == nil && r.pause > lock.DefaultTTL+lock.DefaultBeat {
		err = stops(inst, began, noticed)
	}
	return what, err
}
