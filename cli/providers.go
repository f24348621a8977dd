package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
)

func newProviders(p *Program) *cobra.Command {
	return &cobra.Command{
		Use: "providers", Short: "Lists the providers", Args: noArgs,
		RunE: run("", func(_ context.Context, io console.Streams, _ []string) error {
			_, err := fmt.Fprintln(io.Out, strings.Join(p.Providers.Names(), "\n"))
			return err
		}),
	}
}
