package incontainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// open has a run, which has the lock, find out what the state knows. A deployment that has no
// identity gets one, and enters the engine's index.
func (s *State) open(ctx context.Context, req contract.StateRequest) (out contract.Opened, err error) {
	err = s.under(ctx, req.Who.Run, func(ctx context.Context, w *state.Work) (err error) {
		if out, err = s.find(ctx, w, req.Deployment); err != nil {
			return err
		}
		if _, err = state.MakeIdentity(ctx, w.Store, w.Generation, req.Deployment); err != nil || req.Entry == "" {
			return err
		}
		return os.WriteFile(req.Entry, nil, 0o644)
	})
	return out, err
}

// find finds out what the state knows.
func (s *State) find(ctx context.Context, w *state.Work, deployment string) (out contract.Opened, err error) {
	known, err := journal.On(w.Store, deployment).Steps(ctx)
	if err != nil {
		return out, err
	}
	out.Known = len(known)
	last, err := state.Latest(ctx, w.Store)
	switch {
	case errors.Is(err, state.ErrNoRun):
	case err != nil:
		return out, fmt.Errorf("find the last run: %w", err)
	default:
		record, problem, err := s.record(ctx, last, "")
		if err != nil {
			return out, err
		}
		if record != nil && problem == "" {
			out.Phases = record.Phases
		}
	}
	runtime, err := state.Runtime(ctx, w.Store)
	switch {
	case err == nil:
		out.First = runtime.Platform == ""
	case errors.Is(err, fs.ErrNotExist):
		out.First = true
	case !errors.Is(err, state.ErrDamaged): // a run mends that
		return out, fmt.Errorf("read the runtime state: %w", err)
	}
	out.Lost, err = s.place.ClusterLost(ctx, w.Store)
	return out, err
}
