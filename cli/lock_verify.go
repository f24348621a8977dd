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

func newLockVerify() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "verify", Short: "Compares a bundle with the pins of this program", Args: noArgs,
		RunE: run("", func(_ context.Context, io console.Streams, _ []string) error { return verifyLock(io, dir) }),
	}
	cmd.Flags().StringVar(&dir, "bundle", os.Getenv("SLIPWAY_BUNDLE"), "the bundle to compare with the lock (env SLIPWAY_BUNDLE)")
	return cmd
}

func verifyLock(io console.Streams, dir string) error {
	if dir == "" {
		return usage.Errorf("give --bundle DIR or set SLIPWAY_BUNDLE")
	}
	pins, err := lock.Load()
	if err != nil {
		return err
	}
	b, err := bundle.Read(dir)
	if err != nil {
		return err
	}
	if err := pins.Verify(b); err != nil {
		return err
	}
	fmt.Fprintln(io.Out, "the bundle holds what the lock says")
	return nil
}
