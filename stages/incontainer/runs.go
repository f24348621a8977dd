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
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// runs are all runs, or one of them with its attempts.
func (s *State) runs(ctx context.Context, deployment, run string) (any, error) {
	live, err := s.liveRun(ctx)
	if err != nil {
		return nil, err
	}
	if run == "" {
		return s.list(ctx, live)
	}
	if _, err := report.IDTime(run); err != nil {
		return nil, &fault.Fault{Code: conductor.CodeNotThere, Class: fault.Usage, Op: "read the run", Err: err, Fix: "slipway runs lists them"}
	}
	out := contract.RunDetail{ID: run}
	if out.Record, err = s.record(ctx, run, live); err != nil {
		return nil, err
	}
	out.Attempts, err = journal.On(s.store, deployment).Run(ctx, run)
	if err != nil { // what can be read is shown, and what cannot is named
		out.Problems = append(out.Problems, err.Error())
	}
	for i := range out.Attempts {
		if a := &out.Attempts[i]; a.Status == journal.Running && run != live {
			a.Status = journal.Interrupted
		}
	}
	if out.Record == nil && len(out.Attempts) == 0 && len(out.Problems) == 0 {
		return nil, &fault.Fault{Code: conductor.CodeNotThere, Class: fault.Usage, Op: "read the run",
			Err: fmt.Errorf("there is no run %s", run), Fix: "slipway runs lists them"}
	}
	return out, nil
}

// recordsAtOnce is how many records of runs are read at the same time.
const recordsAtOnce = 8

// list are all runs, the oldest first. One without a record ended before it
// had the lock: it did nothing, and is left out.
func (s *State) list(ctx context.Context, live string) ([]contract.RunSummary, error) {
	ids, err := state.Runs(ctx, s.store)
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	records := make([]*report.Run, len(ids))
	var group errgroup.Group
	group.SetLimit(recordsAtOnce)
	for i, id := range ids {
		group.Go(func() (err error) {
			records[i], err = s.record(ctx, id, live)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	runs := []contract.RunSummary{}
	for i, record := range records {
		if record != nil {
			runs = append(runs, contract.Summarise(ids[i], record))
		}
	}
	return runs, nil
}

// record is the record of a run; nil when it left none. live is the run that
// goes on.
func (s *State) record(ctx context.Context, run, live string) (*report.Run, error) {
	data, err := state.File(ctx, s.store, run, report.RecordFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read run %s: %w", run, err)
	}
	return s.completed(ctx, run, live, data)
}

// writeJSON writes the result of a command that ended with err, if it has one.
func writeJSON(file string, v any, err error) error {
	if err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	return os.WriteFile(file, data, 0o644)
}
