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
		Use: "configure", Short: "Write a configuration, from a form or from given answers", Example: `  slipway configure   # a form
  slipway configure --name shop --set global.scale=100`, Long: configure.Long,
		Args: noArgs, RunE: run("stopping", func(ctx context.Context, io console.Streams, _ []string) error { return c.Run(ctx, io) }),
	}
	cmd.Flags().SortFlags = false
	c.AddFlags(cmd, p.Version, p.registries())
	completeName(cmd, "name")
	return cmd
}
