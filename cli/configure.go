package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/configure"
	"github.com/slipway-sh/slipway/cli/internal/console"
)

func newConfigure(p *Program) *cobra.Command {
	var c configure.Command
	cmd := &cobra.Command{
		Use: "configure", Short: "Makes a configuration: asks for it in a form, or takes the answers that are given", Long: configure.Long,
		Args: noArgs, RunE: run("stopping", func(ctx context.Context, io console.Streams, _ []string) error { return c.Run(ctx, io) }),
	}
	cmd.Flags().SortFlags = false
	c.AddFlags(cmd, p.Version, p.registries())
	complete(cmd, "deployment", deploymentNames())
	return cmd
}
