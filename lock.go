package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
)

// lockCommand is `slipway lock`.
func lockCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	dir := set.String("bundle", os.Getenv("SLIPWAY_BUNDLE"), "the bundle to compare with the lock (env SLIPWAY_BUNDLE)")
	return func(_ context.Context, io streams, args []string) error {
		if len(args) != 1 || args[0] != "verify" {
			return errUsage{errors.New("give: verify")}
		}
		pins, err := lock.Load()
		if err != nil {
			return fmt.Errorf("read the lock: %w", err)
		}
		if *dir == "" {
			return errUsage{errors.New("give --bundle DIR or set SLIPWAY_BUNDLE")}
		}
		b, err := bundle.Read(*dir)
		if err != nil {
			return err
		}
		if err := pins.Verify(b); err != nil {
			return err
		}
		fmt.Fprintln(io.out, "the bundle holds what the lock says")
		return nil
	}
}
