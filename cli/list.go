package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/conductor"
)

type listOptions struct {
	deployment deployment.Flags
	format     format
}

func newList(p *Program) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use: "list", Short: "List the deployments on this engine, or in a bucket", Example: `  slipway list
  slipway list --state 's3://bucket?region=eu-central-1' --output json`,
		Long: `List the deployments whose state is on this engine; or, with --state or a configuration that has
state.url, those in that bucket.

A deployment is in the list from its first run until a destroy has removed it. Its state is the one
that its last run left: slipway status --live checks the cluster. An engine that removes its volumes
forgets the list; each deployment is in it again after its next run.`,
		Args: noArgs, RunE: atOnce(o.run),
	}
	addDeployment(cmd, cmd.Flags(), p, &o.deployment)
	_ = cmd.Flags().MarkHidden("name") // the list is not about one deployment
	o.format.addFlag(cmd.Flags())
	return cmd
}

func (o *listOptions) run(ctx context.Context, streams console.Streams, _ []string) error {
	return show(ctx, streams, &o.deployment, &o.format, func(ctx context.Context, d *deployment.Deployment) ([]conductor.DeploymentSummary, error) {
		return d.List(ctx)
	}, func(w io.Writer, all []conductor.DeploymentSummary) error { return listDeployments(w, all, time.Now()) })
}

// listDeployments prints a line per deployment.
func listDeployments(w io.Writer, all []conductor.DeploymentSummary, now time.Time) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "there is no deployment")
		return err
	}
	table := newTable(w)
	fmt.Fprintln(table, "NAME\tRELEASE\tSTATE\tLAST RUN\tAGE")
	for _, d := range all {
		if d.Problem != "" {
			fmt.Fprintf(table, "%s\tnot usable: %s\n", d.Deployment, redact.OneLine(d.Problem))
			continue
		}
		release, last := "-", "-"
		if d.Installed != "" {
			release = redact.OneLine(d.Release + " " + d.Installed)
		}
		if d.Run != "" {
			last = redact.OneLine(d.Workflow + " " + d.Run)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", d.Deployment, release, d.State, last, age(now.Sub(d.Created)))
	}
	return table.Flush()
}

// age is how long ago something was: "12s", "3m05s", "1h02m", "2d".
func age(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 2*day {
		return report.Took(d)
	}
	return fmt.Sprintf("%dd", d/day)
}
