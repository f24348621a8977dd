package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/containers/bundle"
)

func newBundleVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify DIR", Short: "Compares every file of a bundle with its index", Args: takes(1, 1, "give the directory of one bundle"),
		RunE: atOnce(func(ctx context.Context, io console.Streams, args []string) error {
			if err := bundle.Verify(ctx, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintln(io.Out, "every file is the one that bundle.json names")
			return err
		}),
	}
}
