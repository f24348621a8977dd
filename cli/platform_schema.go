package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/docs"
)

func newPlatformSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of platform.yaml", Example: `  slipway platform schema > platform.schema.json`, Args: noArgs,
		RunE: atOnce(func(_ context.Context, io console.Streams, _ []string) error {
			_, err := fmt.Fprint(io.Out, docs.PlatformSchema())
			return err
		}),
	}
}
