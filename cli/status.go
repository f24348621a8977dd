package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
)

type statusOptions struct {
	deployment deployment.Flags
	format     format
	live       bool
}

func newStatus(p *Program) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{Use: "status", Short: "Shows the deployment's steps and applications, as the last run saw them", Args: noArgs, RunE: atOnce(o.run)}
	addDeployment(cmd, cmd.Flags(), p, &o.deployment)
	o.format.addFlag(cmd.Flags())
	cmd.Flags().BoolVar(&o.live, "live", false, "check the applications and the gates of components now; starts the cluster if it does not run")
	return cmd
}

func (o *statusOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	return o.deployment.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error {
		status, err := d.Status(ctx, o.live)
		if status != nil { // also of a deployment that is not there
			err = errors.Join(err, o.format.print(io.Out, status, status.Text))
		}
		return err
	})
}
