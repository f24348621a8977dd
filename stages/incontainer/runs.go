package incontainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

func (s *State) run(ctx context.Context, run string) (*contract.RunDetail, error) {
	live, err := s.liveRun(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := report.IDTime(run); err != nil {
		return nil, &fault.Fault{Code: contract.CodeNotThere, Class: fault.Usage, Op: "read the run", Err: err, Fix: "slipway runs lists them"}
	}
	out := &contract.RunDetail{ID: run}
	record, problem, err := s.record(ctx, run, live)
	if err != nil {
		return nil, err
	}
	out.Record, out.Problem = record, problem
	if out.Record == nil && problem == "" {
		return nil, &fault.Fault{Code: contract.CodeNotThere, Class: fault.Usage, Op: "read the run",
			Err: fmt.Errorf("there is no run %s", run), Fix: "slipway runs lists them"}
	}
	return out, nil
}

const recordsAtOnce = 8

// runs are all runs that got the lock, and so have a record, the oldest first.
func (s *State) runs(ctx context.Context) ([]contract.RunSummary, error) {
	live, err := s.liveRun(ctx)
	if err != nil {
		return nil, err
	}
	ids, err := state.Runs(ctx, s.store)
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	found := make([]*contract.RunSummary, len(ids)) // and not the records, which may be large
	var group errgroup.Group
	group.SetLimit(recordsAtOnce)
	for i, id := range ids {
		group.Go(func() error {
			record, problem, err := s.record(ctx, id, live)
			if record != nil {
				summary := contract.Summarise(id, record)
				found[i] = &summary
			} else if problem != "" {
				found[i] = &contract.RunSummary{ID: id, Problem: problem}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	runs := []contract.RunSummary{}
	for _, summary := range found {
		if summary != nil {
			runs = append(runs, *summary)
		}
	}
	return runs, nil
}

// record is the record of a run; nil when it left none, or when there is a problem
// with it: it is torn, or of a newer version. live is the run that goes on.
func (s *State) record(ctx context.Context, run, live string) (r *report.Run, problem string, err error) {
	data, err := state.File(ctx, s.store, run, report.RecordFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read run %s: %w", run, err)
	}
	if r, err = s.completed(ctx, run, live, data); err != nil && ctx.Err() == nil {
		return nil, err.Error(), nil
	}
	return r, "", err
}

// writeJSON writes an answer to a file, which may hold a secret.
func writeJSON(file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return os.WriteFile(file, data, 0o600)
}

func (s *State) backups(ctx context.Context) ([]contract.BackupSummary, error) {
	repo, err := backup.Open(ctx, s.backend, s.store)
	if err != nil {
		return nil, err
	}
	return repo.List(ctx)
}

// backup is a backup, with the release that was installed when it was made.
func (s *State) backup(ctx context.Context, id string) (*contract.BackupRelease, error) {
	repo, err := backup.Open(ctx, s.backend, s.store)
	if err != nil {
		return nil, err
	}
	b, err := repo.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if b.Reason != contract.ForUpgrade || b.Release == nil {
		return nil, backup.DataOnly(id)
	}
	archive, err := repo.Archive(ctx, backup.ReleaseKey(id), *b.Release)
	return &contract.BackupRelease{Backup: b, Archive: archive}, err
}
