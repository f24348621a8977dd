package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config/deployments"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

// addDeployment declares the flags of a command on a deployment.
func addDeployment(cmd *cobra.Command, p *Program, f *deployment.Flags) {
	cmd.Flags().SortFlags = false
	f.AddFlags(cmd, cmd.Flags(), p.Version, p.registries())
	completeName(cmd, "name")
}

// deploymentAction is what a command does with a deployment without a workflow.
type deploymentAction func(ctx context.Context, io console.Streams, d *deployment.Deployment, args []string) error

// onDeployment completes cmd, a command that does this with the deployment that f names.
func onDeployment(cmd *cobra.Command, p *Program, f *deployment.Flags, do deploymentAction) *cobra.Command {
	addDeployment(cmd, p, f)
	cmd.RunE = atOnce(func(ctx context.Context, io console.Streams, args []string) error {
		return f.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error { return do(ctx, io, d, args) })
	})
	return cmd
}

// query completes cmd, a command that prints what read finds out about a deployment: as text or JSON.
func query[T any](cmd *cobra.Command, p *Program, read func(context.Context, *deployment.Deployment, []string) (T, error), text func(io.Writer, T) error) *cobra.Command {
	var as format
	onDeployment(cmd, p, &deployment.Flags{}, func(ctx context.Context, streams console.Streams, d *deployment.Deployment, args []string) error {
		found, err := read(ctx, d, args)
		if err != nil {
			return err
		}
		return as.print(streams.Out, found, func(w io.Writer) error { return text(w, found) })
	})
	as.addFlag(cmd.Flags())
	return cmd
}

// addSource declares the flags of a command that only reads a configuration.
func addSource(cmd *cobra.Command, p *Program, s *source.Source) {
	s.Registries = p.registries()
	cmd.Flags().SortFlags = false
	s.AddFlags(cmd.Flags())
	completeName(cmd, "name")
}

// completeName makes a shell complete the values of a flag by the names of stored deployments.
func completeName(cmd *cobra.Command, flag string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, deploymentNames); err != nil {
		panic(err) // there is no such flag
	}
}

// deploymentNames are the deployments with a stored configuration. A shell that completes shows no
// errors.
func deploymentNames(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	folder, err := deployments.Default()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := folder.Names()
	return names, cobra.ShellCompDirectiveNoFileComp
}

// format is how a command prints its result: text or json.
type format string

// addFlag declares the flag.
func (f *format) addFlag(set *pflag.FlagSet) {
	*f = "text"
	set.VarP(f, "output", "o", "format of what is printed: text or json")
}

func (f *format) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *format) Set(text string) error {
	if text != "text" && text != "json" {
		return errors.New("give text or json")
	}
	*f = format(text)
	return nil
}

// Type implements pflag.Value.
func (f *format) Type() string { return "string" }

// print prints v as JSON, or calls text.
func (f *format) print(w io.Writer, v any, text func(io.Writer) error) error {
	if *f == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	return text(redact.NewPrinter(w))
}

// newTable aligns the columns of lines; the caller flushes it.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }
