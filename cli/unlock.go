package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
)

type unlockOptions struct {
	deployment deployment.Flags
	force      bool
}

func newUnlock(p *Program) *cobra.Command {
	var o unlockOptions
	cmd := &cobra.Command{Use: "unlock", Short: "Release the lock of a run that is gone", Example: `  slipway unlock --name shop`, Args: noArgs, RunE: atOnce(o.run)}
	addDeployment(cmd, cmd.Flags(), p, &o.deployment)
	cmd.Flags().BoolVar(&o.force, "force", false, "take the lock from a run that still gives signs of life")
	return cmd
}

func (o *unlockOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	return o.deployment.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error {
		r, err := d.Unlock(ctx, o.force)
		if err != nil {
			return err
		}
		fmt.Fprintf(io.Text(), "deployment %s is not locked any more", d.Config.Global.Name)
		if r.After != nil {
			fmt.Fprintf(io.Text(), "; %s had the lock", r.After.Holder)
		}
		fmt.Fprintln(io.Text())
		return nil
	})
}
