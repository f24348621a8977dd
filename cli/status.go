package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
)

type statusOptions struct {
	deployment deployment.Flags
	format     format
}

func newStatus(p *Program) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{Use: "status", Short: "Shows the deployment's steps and applications", Args: noArgs, RunE: run("", o.run)}
	addDeployment(cmd, p, &o.deployment)
	o.format.addFlag(cmd.Flags())
	return cmd
}

func (o *statusOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	return o.deployment.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error {
		status, err := d.Status(ctx)
		if err != nil {
			return err
		}
		return o.format.print(io.Out, status, status.Text)
	})
}
