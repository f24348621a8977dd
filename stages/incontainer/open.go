package incontainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// open reads the state for a run that has the lock, and gives the deployment an identity if it has none.
func (s *State) open(ctx context.Context, req contract.HeldInput) (out contract.Opened, err error) {
	err = s.under(ctx, req.Who.Run, func(ctx context.Context, w *state.Work) error {
		known, err := journal.On(w.Store, req.Deployment).Steps(ctx)
		if err != nil {
			return err
		}
		out.Known = len(known)
		if out.Phases, err = s.lastPhases(ctx); err != nil {
			return err
		}
		runtime, err := s.runtime(ctx)
		if err != nil {
			return err
		}
		out.First = runtime.Platform == ""
		if out.Lost, err = s.backend.ClusterLost(ctx, w.Store); err != nil {
			return err
		}
		if _, err = state.MakeIdentity(ctx, w.Store, w.Generation, req.Deployment); err != nil || req.Entry == "" {
			return err
		}
		return os.WriteFile(req.Entry, nil, 0o644)
	})
	return out, err
}

// lastPhases are the phases of the last run that left a record.
func (s *State) lastPhases(ctx context.Context) ([]report.Phase, error) {
	id, err := state.Latest(ctx, s.store)
	if errors.Is(err, state.ErrNoRun) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("find the last run: %w", err)
	}
	last, problem, err := s.record(ctx, id, "")
	if err != nil || last == nil || problem != "" {
		return nil, err
	}
	return last.Phases, nil
}

// runtime is the runtime state; zero if there is none, or if it is damaged: the next run mends that.
func (s *State) runtime(ctx context.Context) (contract.RuntimeState, error) {
	runtime, err := state.Runtime(ctx, s.store)
	switch {
	case err == nil:
		return *runtime, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, state.ErrDamaged):
		return contract.RuntimeState{}, nil
	}
	return contract.RuntimeState{}, fmt.Errorf("read the runtime state: %w", err)
}
