package incontainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// Open has a run, which has the lock, find out what the state knows, and writes that to file. A
// deployment that has no identity gets one, and enters the engine's index. over, unless it is
// empty, is a contract.Over as JSON: a run that cannot bring that, as the records tell, is refused.
func (s *State) Open(ctx context.Context, file, run, deployment, over string) error {
	var out contract.Opened
	err := s.under(ctx, run, func(ctx context.Context, w *state.Work) (err error) {
		if out, err = s.open(ctx, w, deployment); err != nil {
			return err
		}
		if _, err = state.MakeIdentity(ctx, w.Store, w.Generation, deployment); err != nil {
			return err
		}
		if err := s.enter(true); err != nil {
			return err
		}
		if over != "" && !out.Lost {
			return s.mayBring(ctx, over)
		}
		return nil
	})
	return writeJSON(file, out, err)
}

func (s *State) open(ctx context.Context, w *state.Work, deployment string) (out contract.Opened, err error) {
	known, err := journal.On(w.Store, deployment).All(ctx)
	if ctx.Err() != nil {
		return out, err
	}
	out.Known = len(known) // records that cannot be read make a run slower, not wrong
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
