package incontainer

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// Open has a run of who, which has the lock, find out what the state knows, and writes that to
// file. A deployment that has no identity gets one; with unnamed not if nothing is known of it
// at all: a copy has it. With claim it is noted whose a deployment is that has one. over, unless
// it is empty, is a contract.Over as JSON: a run that cannot bring that, as the records tell, is
// refused.
func (s *State) Open(ctx context.Context, file string, who lock.Holder, deployment, over string, unnamed, claim bool) error {
	var out contract.Opened
	err := s.under(ctx, who.Run, func(ctx context.Context, w *state.Work) (err error) {
		if out, err = s.open(ctx, w); err != nil {
			return err
		}
		if out.Identity == nil {
			if unnamed && out.Last == "" && !s.place.Remote() {
				return nil
			}
			if out.Identity, err = state.MakeIdentity(ctx, w.Store, w.Generation, deployment); err != nil {
				return err
			}
		}
		if claim {
			out.From, err = s.claim(ctx, w, who)
		}
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
	if out.Identity, err = state.Identity(ctx, w.Store); err != nil {
		return out, err
	}
	half, err := state.Restoring(ctx, w.Store)
	if err != nil {
		return out, err
	}
	if out.Identity != nil || !half { // of half a copy nothing is known
		if out.Last, err = state.Latest(ctx, w.Store); err != nil && !errors.Is(err, state.ErrNoRun) {
			return out, fmt.Errorf("find the last run: %w", err)
		}
	}
	if out.Last != "" {
		record, problem, err := s.record(ctx, out.Last, "")
		if err != nil {
			return out, err
		}
		if record != nil && problem == "" {
			out.Phases = record.Phases
			out.Removed = out.Identity == nil && record.Workflow == config.Destroy && record.Outcome == report.Succeeded
		}
	}
	out.Lost, err = s.place.ClusterLost(ctx, w.Store)
	return out, err
}

// Restore makes the state from the copy in dir for a run of who, which has the lock, and
// writes to file what it knows then. With claim it is noted whose it is.
func (s *State) Restore(ctx context.Context, file string, who lock.Holder, dir string, claim bool) error {
	var out contract.Opened
	err := s.under(ctx, who.Run, func(ctx context.Context, w *state.Work) (err error) {
		if _, err = s.place.Restore(ctx, w, dir); errors.Is(err, state.ErrBadCopy) {
			return &fault.Fault{Code: contract.CodeCopy, Class: fault.Preflight, Op: "restore the deployment's state", Err: err}
		}
		if err == nil {
			out, err = s.open(ctx, w)
		}
		if err == nil && claim {
			out.From, err = s.claim(ctx, w, who)
		}
		return err
	})
	return writeJSON(file, out, err)
}

// Copy writes a copy of the state to dir for a run, which has the lock; have identifies the
// backups that whoever asks has already.
func (s *State) Copy(ctx context.Context, run, dir, have string) error {
	return s.under(ctx, run, func(ctx context.Context, w *state.Work) error {
		stored, err := s.stored(ctx)
		if err != nil {
			return err
		}
		return s.place.Copy(ctx, w, dir, have, contract.Copy{Run: run, Stored: *stored})
	})
}
