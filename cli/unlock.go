package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/usage"
)

type unlockOptions struct {
	deployment deployment.Flags
	force      bool
	reason     string
}

func newUnlock(p *Program) *cobra.Command {
	var o unlockOptions
	cmd := &cobra.Command{Use: "unlock", Short: "Release the lock of a run that is gone", Example: `  slipway unlock --name shop --reason 'the runner is gone'`, Args: noArgs, RunE: atOnce(o.run)}
	addDeployment(cmd, cmd.Flags(), p, &o.deployment)
	cmd.Flags().BoolVar(&o.force, "force", false, "take the lock away also from a run that gives signs of life")
	cmd.Flags().StringVar(&o.reason, "reason", "", "why; it is recorded")
	return cmd
}

func (o *unlockOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	if o.reason == "" {
		return usage.Errorf("give --reason '…', which is recorded; and --force as well, where the run that has the lock gives signs of life")
	}
	return o.deployment.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error {
		r, err := d.Unlock(ctx, o.reason, o.force)
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
