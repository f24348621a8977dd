package incontainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// mayBring returns the fault of a run that the cluster would refuse, as far as the records tell:
// text is a contract.Over. So it is known before hooks run and the cluster is started. What they
// do not tell, the cluster does later.
func (s *State) mayBring(ctx context.Context, text string) error {
	var over contract.Over
	if err := json.Unmarshal([]byte(text), &over); err != nil {
		return fmt.Errorf("decode what the run brings: %w", err)
	}
	has, err := s.recorded(ctx)
	if err != nil {
		return err
	}
	if has == nil {
		if over.Change.Resume {
			return s.mayResume(ctx)
		}
		return nil
	}
	has.Style = over.Change.Style // in which one an upgrade was begun, the cluster knows
	r := &platform.Release{Name: over.Platform, Version: over.Version, UpgradableFrom: over.UpgradableFrom}
	if over.Data {
		r.Data = []platform.Data{{}}
	}
	return has.Check(r, installed.How{Upgrade: over.Upgrade, Change: over.Change})
}

// mayResume returns the fault of an upgrade that is to go on, where the records tell that none
// can: since an upgrade, or a rollback, came to its end no other one has come as far as its backup.
func (s *State) mayResume(ctx context.Context) error {
	live, err := s.liveRun(ctx)
	if err != nil {
		return err
	}
	ids, err := state.Runs(ctx, s.store)
	if err != nil {
		return fmt.Errorf("list the runs: %w", err)
	}
	for _, id := range slices.Backward(ids) {
		if id == live { // the one that asks
			continue
		}
		r, problem, err := s.record(ctx, id, live)
		switch {
		case err != nil:
			return err
		case problem != "": // nobody knows
			return nil
		case r == nil || r.Workflow == config.Test || r.Workflow == config.Install || conductor.Refusal(r) != nil: // neither begins an upgrade, nor ends one
		case r.Outcome == report.Succeeded:
			return installed.Nothing()
		case r.Workflow != config.Upgrade || backedUp(r):
			return nil
		}
	}
	return nil
}

// backedUp reports whether an upgrade may have made its backup: it is noted in the cluster before
// the step ends.
func backedUp(r *report.Run) bool {
	return slices.ContainsFunc(r.Steps, func(s report.Step) bool {
		return s.ID() == contract.BackupStep().String() && !s.Started.IsZero()
	})
}

// recorded is what the cluster has, as the last run left it; nil where that is not certain.
func (s *State) recorded(ctx context.Context) (*installed.Record, error) {
	id, err := state.Latest(ctx, s.store)
	if errors.Is(err, state.ErrNoRun) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the last run: %w", err)
	}
	runtime, err := state.Runtime(ctx, s.store)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, state.ErrDamaged) { // nothing was installed to the end, or nobody knows
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the runtime state: %w", err)
	}
	last, _, err := s.last(ctx, id)
	if err != nil && ctx.Err() == nil {
		say(s.errw, "lock", "what the last run has left is not known: %v", err)
		return nil, nil
	}
	if err != nil || last == nil {
		return nil, err
	}
	p := last.Platform
	switch done := last.Outcome == report.Succeeded; {
	case runtime.Platform == "" || last.Outcome == report.Running:
	case done && p.Version == runtime.Platform && (last.Workflow == config.Install || last.Workflow == config.Upgrade):
		return &installed.Record{Platform: p.Name, Version: p.Version}, nil
	case !done && p.Version != runtime.Platform && last.Workflow == config.Upgrade && conductor.BackedUp(last):
		return &installed.Record{Platform: p.Name, Version: runtime.Platform, Toward: p.Version, From: p.From, Backup: last.ID}, nil
	}
	return nil, nil
}
