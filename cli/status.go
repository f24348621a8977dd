package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/conductor"
)

type statusOptions struct {
	deployment deployment.Flags
	format     console.Format
	live       bool
}

func newStatus(p *Program) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{Use: "status", Short: "Show steps and applications as the last run saw them", Example: `  slipway status --name shop --live`, Args: usage.NoArgs, RunE: console.AtOnce(o.run)}
	o.deployment.AddFlags(cmd, p)
	o.format.AddFlag(cmd.Flags())
	o.deployment.Release.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.live, "live", false, "check applications and gates now; starts the cluster if it does not run")
	return cmd
}

func (o *statusOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	var how deployment.Run
	if o.live {
		how.Prepare = o.prepare
	}
	return o.deployment.Do(ctx, io, how, func(ctx context.Context, d *deployment.Deployment) error {
		status, err := d.Status(ctx, o.live)
		if status != nil { // even without a deployment
			err = errors.Join(err, o.format.Print(io.Out, status, status.Text))
		}
		return err
	})
}

// prepare opens the platform release for its gates. A release that only the configuration names may be out of reach.
func (o *statusOptions) prepare(ctx context.Context, _ console.Streams, opts *conductor.Options, from deployment.Inputs) error {
	f := &o.deployment
	err := f.Release.Open(ctx, opts.Config, f.Source.Path, from.Anew, opts)
	if err == nil || f.Release.Dir != "" || f.Release.ID != "" || ctx.Err() != nil {
		return err
	}
	opts.Release = nil
	opts.Warn(report.Clean(err.Error()))
	return nil
}
