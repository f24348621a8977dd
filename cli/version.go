package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
)

func newVersion(p *Program) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Prints the version", Args: noArgs,
		RunE: atOnce(func(_ context.Context, io console.Streams, _ []string) error {
			_, err := fmt.Fprintln(io.Out, "slipway "+p.Version)
			return err
		}),
	}
}
