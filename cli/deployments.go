package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

func newList(p *Program) *cobra.Command {
	cmd := deployment.Query(&cobra.Command{
		Use: "list", Short: "List the deployments on this engine, or in a bucket", Args: usage.NoArgs, Example: `  slipway list
  slipway list --state 's3://bucket?region=eu-central-1' --output json`,
		Long: `List the deployments whose state is on this engine or, with --state or state.url in the
configuration, in that bucket.

A deployment is in the list from its first run until its destroy, with the state of its last run;
slipway status --live checks the cluster. If the engine loses its volumes, it loses the list, too;
a deployment is in it again after its next run.`,
	}, p, func(ctx context.Context, d *deployment.Deployment, _ []string) ([]contract.DeploymentSummary, error) {
		return d.List(ctx)
	}, func(w io.Writer, all []contract.DeploymentSummary) error { return listDeployments(w, all, time.Now()) })
	_ = cmd.Flags().MarkHidden("name") // the list is not about one deployment
	return cmd
}

func listDeployments(w io.Writer, all []contract.DeploymentSummary, now time.Time) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "there is no deployment")
		return err
	}
	table := console.NewTable(w)
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

// age formats an age: "12s", "3m05s", "1h02m", "2d".
func age(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 2*day {
		return report.Took(d)
	}
	return fmt.Sprintf("%dd", d/day)
}

func newUse() *cobra.Command {
	var forget string
	cmd := &cobra.Command{
		Use: "use [NAME]", Short: "Choose the deployment that commands use by default, or list the stored ones", Example: `  slipway use shop
  slipway use --forget shop   # what is installed stays`,
		Args: usage.Takes(0, 1, "give the name of one deployment, or nothing"), ValidArgsFunction: source.Names, RunE: console.AtOnce(func(_ context.Context, io console.Streams, args []string) error { return use(io, forget, args) }),
	}
	cmd.Flags().StringVar(&forget, "forget", "", "remove the stored configuration of this deployment")
	source.CompleteName(cmd, "forget")
	return cmd
}

func use(io console.Streams, forget string, args []string) error {
	switch {
	case forget != "" && len(args) > 0:
		return usage.Errorf("give --forget alone")
	case len(args) == 1 && args[0] == "":
		return usage.Errorf("the name is empty")
	}
	folder, err := config.DefaultFolder()
	if err != nil {
		return err
	}
	if forget != "" {
		if err := folder.Remove(forget); err != nil {
			return err
		}
		_, err := fmt.Fprintf(io.Text(), "the configuration of deployment %s is removed; what is installed stays\n", forget)
		return err
	}
	if len(args) == 0 {
		return listStored(io.Out, folder)
	}
	if err := folder.Use(args[0]); err != nil {
		return err
	}
	fmt.Fprintf(io.Text(), "deployment %s is the current one: %s\n", args[0], folder.File(args[0]))
	if other := os.Getenv(source.EnvDeployment); other != "" && other != args[0] {
		fmt.Fprintf(io.Err, "slipway: in this shell commands go on working on %s: %s is set, and comes first\n", fault.Quote(other), source.EnvDeployment)
	}
	return nil
}

// listStored lists the stored deployments and marks the current one.
func listStored(w io.Writer, folder config.Folder) error {
	names, err := folder.Names()
	if err != nil {
		return err
	}
	current, gone := folder.Current() // the list helps even if that is gone
	if len(names) == 0 {
		fmt.Fprintln(w, "no configurations are stored; slipway configure creates one")
		return gone
	}
	table := console.NewTable(w)
	for _, name := range names {
		mark := "  "
		if name == current {
			mark = "* "
		}
		fmt.Fprintf(table, "%s%s\t%s\n", mark, name, folder.File(name))
	}
	return errors.Join(gone, table.Flush())
}
