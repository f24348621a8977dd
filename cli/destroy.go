package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/stages/conductor"
)

type destroyOptions struct {
	deployment  deployment.Flags
	lockTimeout time.Duration
}

func newDestroy(p *Program) *cobra.Command {
	var o destroyOptions
	cmd := &cobra.Command{
		Use: "destroy", Short: "Removes the platform and its cluster and looks whether anything is left",
		Args: noArgs, RunE: run("", o.run),
	}
	addDeployment(cmd, p, &o.deployment)
	addLockTimeout(cmd.Flags(), &o.lockTimeout)
	return cmd
}

func (o *destroyOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	prepare := func(_ context.Context, c *conductor.Options, _ deployment.Inputs) error {
		c.LockTimeout = o.lockTimeout
		return nil
	}
	return o.deployment.Do(ctx, io, deployment.Run{Workflow: "destroy", Prepare: prepare}, func(ctx context.Context, d *deployment.Deployment) error {
		record, err := d.Destroy(ctx)
		if err == nil {
			d.Session.EndWithRun()
		}
		return summary(io, record, err)
	})
}
