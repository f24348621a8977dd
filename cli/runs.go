package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/state"
)

func runsCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	t := targetFlags(set)
	output := set.StringP("output", "o", "text", `format: "text" or "json"`)
	return func(ctx context.Context, io streams, args []string) error {
		show := ""
		switch {
		case len(args) == 0:
		case args[0] == "show" && len(args) == 2:
			show = args[1]
		default:
			return errUsage{errors.New("give nothing, or show and the id of a run")}
		}
		if *output != "text" && *output != "json" {
			return errUsage{fmt.Errorf("--output is %q; give text or json", *output)}
		}
		return t.conduct(ctx, io, nil, func(ctx context.Context, c *conductor.Conductor) error {
			if show != "" {
				run, err := c.Run(ctx, show)
				if err != nil {
					return err
				}
				if *output == "json" {
					return printJSON(io.out, run)
				}
				return showRun(io.out, run)
			}
			runs, err := c.Runs(ctx)
			if err != nil {
				return err
			}
			if *output == "json" {
				return printJSON(io.out, runs)
			}
			return listRuns(io.out, runs)
		})
	}
}

func unlockCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	t := targetFlags(set)
	force := set.Bool("force", false, "take the lock away also from a run that gives signs of life")
	reason := set.String("reason", "", "why; it is recorded")
	return func(ctx context.Context, io streams, args []string) error {
		if err := noArgs(args); err != nil {
			return err
		}
		if *reason == "" {
			return errUsage{errors.New("give --reason; it is recorded")}
		}
		return t.conduct(ctx, io, nil, func(ctx context.Context, c *conductor.Conductor) error {
			r, err := c.Unlock(ctx, *reason, *force)
			if err != nil {
				return err
			}
			fmt.Fprintf(io.out, "deployment %s is not locked any more", t.cfg.Global.Name)
			if r.After != nil {
				fmt.Fprintf(io.out, "; %s had the lock", r.After.Holder)
			}
			fmt.Fprintln(io.out)
			return nil
		})
	}
}

// whoAmI is who holds the lock of a run that this program drives.
func whoAmI() (name, host string) {
	name, host = "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if os.Getenv("SLIPWAY_MODULE") != "" {
		name = "dagger call"
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name, host
}

// listRuns prints a line per run, the newest last.
func listRuns(w io.Writer, runs []contract.RunSummary) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(w, "no run is recorded")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RUN\tWORKFLOW\tOUTCOME\tEXIT\tSTARTED\tTIME")
	for _, r := range runs {
		took := "-"
		if r.Seconds > 0 {
			took = time.Duration(r.Seconds * float64(time.Second)).Round(100 * time.Millisecond).String()
		}
		started := "-"
		if !r.Started.IsZero() {
			started = r.Started.Format(time.DateTime)
		}
		exit := "-"
		if r.Outcome.Ended() {
			exit = strconv.Itoa(int(r.Exit))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Workflow, r.Outcome, exit, started, took)
	}
	return table.Flush()
}

// showRun prints the record of a run and each attempt at its steps.
func showRun(w io.Writer, run *contract.RunDetail) error {
	if run.Record != nil {
		if err := run.Record.Summary(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STEP\tATTEMPT\tSTATUS\tSTARTED\tTIME\tCODE")
	for _, a := range run.Attempts {
		took, code := "-", "-"
		if !a.Finished.IsZero() {
			took = a.Finished.Sub(a.Started).Round(time.Millisecond).String()
		}
		if a.Fault != nil {
			code = string(a.Fault.Code)
		}
		fmt.Fprintf(table, "%s/%s\t%d\t%s\t%s\t%s\t%s\n", a.Stage, a.Step, a.Number, a.Status, a.Started.Format(time.DateTime), took, code)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, problem := range run.Problems {
		fmt.Fprintln(w, "not usable:", problem)
	}
	return nil
}

// storedRuns is `slipway state runs`: all runs, or one of them with its attempts.
func storedRuns(ctx context.Context, s *store.Store, deployment, run string) (any, error) {
	live, err := liveRun(ctx, s)
	if err != nil {
		return nil, err
	}
	if run == "" {
		return listedRuns(ctx, s, live)
	}
	if _, err := report.IDTime(run); err != nil {
		return nil, &fault.Fault{Code: conductor.CodeNotThere, Class: fault.Usage, Op: "read the run", Err: err, Fix: "slipway runs lists them"}
	}
	out := contract.RunDetail{ID: run}
	if out.Record, err = storedRecord(ctx, s, run, live); err != nil {
		return nil, err
	}
	out.Attempts, err = journal.On(s, deployment).Run(ctx, run)
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

// listedRuns are all runs, the oldest first. One without a record ended before it
// had the lock: it did nothing, and is left out.
func listedRuns(ctx context.Context, s *store.Store, live string) ([]contract.RunSummary, error) {
	ids, err := state.Runs(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	records := make([]*report.Run, len(ids))
	var group errgroup.Group
	group.SetLimit(recordsAtOnce)
	for i, id := range ids {
		group.Go(func() (err error) {
			records[i], err = storedRecord(ctx, s, id, live)
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

// storedRecord is the record of a run; nil when it left none. live is the run that
// goes on.
func storedRecord(ctx context.Context, s *store.Store, run, live string) (*report.Run, error) {
	data, err := state.File(ctx, s, run, report.RecordFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read run %s: %w", run, err)
	}
	return completed(ctx, s, run, live, data)
}

// writeJSON is how a state command answers.
func writeJSON(file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return os.WriteFile(file, data, 0o644)
}
