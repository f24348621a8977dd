package console

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/pipeline/progress"
)

// Action is what a command does.
type Action func(ctx context.Context, io Streams, args []string) error

// Run turns an action into cobra's RunE, with a screen, interrupts and a span. The first interrupt prints
// stopping; empty: that running steps are awaited.
func Run(stopping string, do Action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		errw := cmd.ErrOrStderr()
		screen := progress.Open(errw, progress.Terminal(errw, os.Getenv))
		defer screen.End() // also when this panics
		ctx, stop, release := Interruptible(cmd.Context(), screen, cmp.Or(stopping, "stopping after the steps that run now"))
		defer release()
		if err := noEmptyKey(cmd); err != nil {
			return err
		}
		ctx, finish := startSpan(ctx, cmd.CommandPath(), screen)
		terminal, _ := errw.(*os.File)
		result := NewResult()
		err := result.Write(do(ctx, Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: screen, Terminal: terminal, Stop: stop, Result: result}, args))
		finish(err)
		return err
	}
}

// noEmptyKey rejects an empty key flag, such as "$KEY" with KEY unset: nothing would be signed or verified.
func noEmptyKey(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if (f.Name == "key" || strings.HasSuffix(f.Name, "-key")) && f.Value.String() == "" {
			err = usage.Errorf("--%s is empty; name a key, or leave the flag out", f.Name)
		}
	})
	return err
}

// AtOnce is Run for an action without a workflow: the first interrupt ends it.
func AtOnce(do Action) func(*cobra.Command, []string) error {
	return Run("stopping", func(ctx context.Context, io Streams, args []string) error {
		ctx, release := UntilInterrupt(ctx, io.Stop, Interrupted("run", "run the same command again"))
		defer release()
		err := do(ctx, io, args)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	})
}
