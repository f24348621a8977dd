package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
)

func newRuns(p *Program) *cobra.Command {
	cmd := query(&cobra.Command{Use: "runs", Short: "List the runs of a deployment", Example: `  slipway runs --name shop`, Args: takes(0, 0, "give no argument, or: show ID")},
		p, func(ctx context.Context, d *deployment.Deployment, _ []string) ([]contract.RunSummary, error) {
			return d.Runs(ctx)
		}, listRuns)
	cmd.AddCommand(query(&cobra.Command{
		Use: "show ID", Short: "Show a run and its steps", Example: `  slipway runs show 20260102-030405-abcdef`,
		Args: takes(1, 1, "give the id of one run; slipway runs lists them"),
	}, p, func(ctx context.Context, d *deployment.Deployment, args []string) (*contract.RunDetail, error) {
		return d.Run(ctx, args[0])
	}, showRun))
	return cmd
}

func newBackups(p *Program) *cobra.Command {
	return query(&cobra.Command{Use: "backups", Short: "List the backups of a deployment", Example: `  slipway backups --name shop`, Args: noArgs},
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
	table := newTable(w)
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
	table := newTable(w)
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
