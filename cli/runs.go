package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

func newRuns(p *Program) *cobra.Command {
	cmd := deployment.Query(&cobra.Command{Use: "runs", Short: "List the runs of a deployment", Example: `  slipway runs --name shop`, Args: usage.Takes(0, 0, "give no argument, or: show ID")},
		p, func(ctx context.Context, d *deployment.Deployment, _ []string) ([]contract.RunSummary, error) {
			return d.Runs(ctx)
		}, listRuns)
	cmd.AddCommand(deployment.Query(&cobra.Command{
		Use: "show ID", Short: "Show a run and its steps", Example: `  slipway runs show 20260102-030405-abcdef`,
		Args: usage.Takes(1, 1, "give the id of one run; slipway runs lists them"),
	}, p, func(ctx context.Context, d *deployment.Deployment, args []string) (*contract.RunDetail, error) {
		return d.Run(ctx, args[0])
	}, showRun))
	return cmd
}

func newBackups(p *Program) *cobra.Command {
	return deployment.Query(&cobra.Command{Use: "backups", Short: "List the backups of a deployment", Example: `  slipway backups --name shop`, Args: usage.NoArgs},
		p, func(ctx context.Context, d *deployment.Deployment, _ []string) ([]contract.BackupSummary, error) {
			return d.Backups(ctx)
		}, listBackups)
}

// listRuns prints a line per run, the newest last.
func listRuns(w io.Writer, runs []contract.RunSummary) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(w, "no run is recorded")
		return err
	}
	table := console.NewTable(w)
	fmt.Fprintln(table, "RUN\tWORKFLOW\tOUTCOME\tEXIT\tSTARTED (UTC)\tTIME")
	for _, r := range runs {
		if r.Problem != "" {
			fmt.Fprintf(table, "%s\t-\tnot usable: %s\n", r.ID, redact.Printable(r.Problem))
			continue
		}
		took := "-"
		if r.Seconds > 0 {
			took = time.Duration(r.Seconds * float64(time.Second)).Round(100 * time.Millisecond).String()
		}
		started := "-"
		if !r.Started.IsZero() {
			started = r.Started.UTC().Format(time.DateTime)
		}
		exit := "-"
		if r.Outcome.Ended() {
			exit = strconv.Itoa(int(r.Exit))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Workflow, r.Outcome, exit, started, took)
	}
	return table.Flush()
}

// showRun prints the record of a run.
func showRun(w io.Writer, run *contract.RunDetail) error {
	if run.Problem != "" {
		_, err := fmt.Fprintln(w, "not usable:", redact.Printable(run.Problem))
		return err
	}
	return run.Record.Summary(w)
}

// listBackups prints a line for each backup, and one for each data in it; the newest last.
func listBackups(w io.Writer, all []contract.BackupSummary) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "there is no backup; an upgrade makes one")
		return err
	}
	table := console.NewTable(w)
	fmt.Fprintln(table, "BACKUP\tTIME (UTC)\tBEFORE\tFROM\tTO\tDATA\tBYTES\tCHECK")
	for _, b := range all {
		if b.Problem != "" {
			fmt.Fprintf(table, "%s\tnot usable: %s\n", b.ID, b.Problem)
			continue
		}
		row := fmt.Sprintf("%s\t%s\t%s\t%s\t%s", b.ID, b.Time.UTC().Format(time.DateTime), b.Reason, b.From, b.To)
		if len(b.Data) == 0 {
			fmt.Fprintf(table, "%s\t-\t-\t-\n", row)
		}
		for i, d := range b.Data {
			if i > 0 {
				row = "\t\t\t\t"
			}
			check := d.Check
			if check == "" {
				check = "not checked"
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", row, d.Name, d.Bytes, check)
		}
	}
	return table.Flush()
}

func newLogs(p *Program) *cobra.Command {
	var run string
	var follow bool
	cmd := deployment.Command(&cobra.Command{
		Use: "logs [STEP]", Short: "Print the logs of a run's steps", Args: usage.Takes(0, 1, "give one step or stage, or nothing"), Example: `  slipway logs orchestrator/sync
  slipway logs --follow`,
		Long: `Print the logs of the last run's steps in order, or of one step (stage/step) or one stage.

With --follow, it continues until the run ends. Ctrl-C ends only this command, not the run.
With the state in a bucket, the log of a step appears when the step has ended.`,
	}, p, &deployment.Flags{}, func(ctx context.Context, io console.Streams, d *deployment.Deployment, args []string) error {
		logs := stepLogs{out: io.Text(), of: strings.Join(args, ""), printed: map[string]int{}}
		id, outcome := run, report.Running
		err := repeat(ctx, func() (done bool, err error) {
			record, err := logs.read(ctx, d, id)
			if err != nil {
				return false, err
			}
			id, outcome = record.ID, record.Outcome // the same run, even if a newer one begins
			return !follow || outcome != report.Running, nil
		})
		if err != nil || !follow {
			return errors.Join(err, context.Cause(ctx))
		}
		if ctx.Err() == nil {
			fmt.Fprintf(io.Err, "slipway: run %s: %s\n", id, outcome)
		}
		return nil
	})
	addRunID(cmd.Flags(), &run)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print what a running run adds, until it ends or you press Ctrl-C")
	return cmd
}

// stepLogs prints the logs of a run, each time what was added to them.
type stepLogs struct {
	out     io.Writer
	of      string         // a stage, or "stage/step"; empty: all steps
	printed map[string]int // how much of the log of each step, in bytes
	last    string         // step that was printed last
}

// read prints what was added to the logs of a run, or of the last one, and returns its record.
func (l *stepLogs) read(ctx context.Context, d *deployment.Deployment, run string) (record *report.Run, err error) {
	dir, err := os.MkdirTemp("", "slipway-logs-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the logs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	dir = filepath.Join(dir, "run")
	if _, err := d.Report(ctx, run, dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	text, err := bounded.FS(root.FS(), report.RecordFile, bounded.Generated)
	if err != nil {
		return nil, err
	}
	if record, err = report.Decode(text); err != nil {
		return nil, err
	}
	return record, l.print(root.FS(), record)
}

// print prints what was added to the logs in a run's directory.
func (l *stepLogs) print(dir fs.FS, run *report.Run) error {
	var all []string
	for _, s := range run.Steps {
		all = append(all, s.ID())
		if l.of != "" && l.of != s.ID() && l.of != s.Stage || s.Log == "" {
			continue
		}
		text, err := bounded.FS(dir, s.Log, bounded.Generated)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read the log of %s: %w", s.ID(), err)
		}
		if run.Outcome == report.Running { // the rest of a line may be on its way
			text = text[:bytes.LastIndexByte(text, '\n')+1]
		}
		text = text[min(l.printed[s.ID()], len(text)):]
		if len(text) == 0 {
			continue
		}
		if l.of != s.ID() && l.last != s.ID() {
			gap := "\n"
			if l.last == "" {
				gap = ""
			}
			fmt.Fprintf(l.out, "%s==> %s <==\n", gap, s.ID())
		}
		l.printed[s.ID()] += len(text)
		l.last = s.ID()
		if _, err := l.out.Write(text); err != nil {
			return err
		}
	}
	is := func(id string) bool { return id == l.of || strings.HasPrefix(id, l.of+"/") }
	if l.of != "" && !slices.ContainsFunc(all, is) {
		return usage.Errorf("run %s has no step or stage %q; its steps are %s", run.ID, l.of, strings.Join(all, ", "))
	}
	return nil
}
