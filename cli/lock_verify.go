package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
)

type lockVerifyOptions struct{ bundle string }

func newLockVerify() *cobra.Command {
	var o lockVerifyOptions
	cmd := &cobra.Command{Use: "verify", Short: "Compares a bundle with the pins of this program", Args: noArgs, RunE: atOnce(o.run)}
	cmd.Flags().StringVar(&o.bundle, "bundle", os.Getenv("SLIPWAY_BUNDLE"), "the bundle to compare with the lock (env SLIPWAY_BUNDLE)")
	return cmd
}

func (o *lockVerifyOptions) run(_ context.Context, io console.Streams, _ []string) error {
	if o.bundle == "" {
		return usage.Errorf("give --bundle DIR or set SLIPWAY_BUNDLE")
	}
	pins, err := lock.Load()
	if err != nil {
		return err
	}
	b, err := bundle.Read(o.bundle)
	if err != nil {
		return err
	}
	if err := pins.Verify(b); err != nil {
		return err
	}
	fmt.Fprintln(io.Out, "the bundle holds what the lock says")
	return nil
}
