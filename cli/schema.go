package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/docs"
)

func newSchema(p *Program) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of the configuration", Example: `  slipway schema > config.schema.json`, Args: noArgs,
		RunE: atOnce(func(_ context.Context, io console.Streams, _ []string) error {
			text, err := config.Schema(p.Providers.Sections())
			if err == nil {
				_, err = io.Out.Write(text)
			}
			return err
		}),
	}
}

func newPlatformSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of platform.yaml", Example: `  slipway platform schema > platform.schema.json`, Args: noArgs,
		RunE: atOnce(func(_ context.Context, io console.Streams, _ []string) error {
			_, err := fmt.Fprint(io.Out, docs.PlatformSchema())
			return err
		}),
	}
}
