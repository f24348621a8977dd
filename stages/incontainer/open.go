package incontainer

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// Open has a run of who, which has the lock, find out what the state knows, and writes that to
// file. A deployment that has no identity gets one, and it is noted whose it is. over, unless it
// is empty, is a contract.Over as JSON: a run that cannot bring that, as the records tell, is
// refused.
func (s *State) Open(ctx context.Context, file string, who lock.Holder, deployment, over string) error {
	var out contract.Opened
	err := s.under(ctx, who.Run, func(ctx context.Context, w *state.Work) (err error) {
		if out, err = s.open(ctx, w); err != nil {
			return err
		}
		if _, err = state.MakeIdentity(ctx, w.Store, w.Generation, deployment); err != nil {
			return err
		}
		out.From, err = s.claim(ctx, w, who)
		if err == nil && over != "" && !out.Lost && out.From == nil {
			err = s.mayBring(ctx, over)
		}
		return err
	})
	return writeJSON(file, out, err)
}

// claim notes whose the deployment is, for a run of who. It returns the engine that has had
// the cluster until now, if that is another one: an install that cannot read the secrets on
// this engine does not take the deployment from it.
func (s *State) claim(ctx context.Context, w *state.Work, who lock.Holder) (from *contract.Engine, err error) {
	was, err := state.ClaimOf(ctx, w.Store)
	if err != nil {
		return nil, err
	}
	away, err := s.place.Away(ctx, w.Store, was)
	if err != nil {
		return nil, err
	}
	if away {
		from = was.Engine
		if who.Workflow == config.Install {
			if err := s.place.CheckSecrets(ctx, w.Store); err != nil {
				return nil, err
			}
		}
	}
	return from, s.place.Claim(ctx, w, was, who)
}

func (s *State) open(ctx context.Context, w *state.Work) (out contract.Opened, err error) {
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
	out.Lost, err = s.place.ClusterLost(ctx, w.Store)
	return out, err
}
