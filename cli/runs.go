package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
)

type runsOptions struct {
	deployment deployment.Flags
	format     format
}

func newRuns(p *Program) *cobra.Command {
	var o runsOptions
	cmd := &cobra.Command{
		Use: "runs", Short: "List the runs of a deployment", Example: `  slipway runs --name shop`,
		Args: takes(0, 0, "give no argument, or: show ID"), RunE: atOnce(o.list),
	}
	show := &cobra.Command{
		Use: "show ID", Short: "Show a run and its steps", Example: `  slipway runs show 20260102-030405-abcdef`,
		Args: takes(1, 1, "give the id of one run; slipway runs lists them"), RunE: atOnce(o.show),
	}
	addDeployment(cmd, cmd.PersistentFlags(), p, &o.deployment)
	o.format.addFlag(cmd.PersistentFlags())
	cmd.AddCommand(show)
	return cmd
}

func (o *runsOptions) list(ctx context.Context, streams console.Streams, _ []string) error {
	return show(ctx, streams, &o.deployment, &o.format, func(ctx context.Context, d *deployment.Deployment) ([]contract.RunSummary, error) {
		return d.Runs(ctx)
	}, listRuns)
}

func (o *runsOptions) show(ctx context.Context, streams console.Streams, args []string) error {
	return show(ctx, streams, &o.deployment, &o.format, func(ctx context.Context, d *deployment.Deployment) (*contract.RunDetail, error) {
		return d.Run(ctx, args[0])
	}, showRun)
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
