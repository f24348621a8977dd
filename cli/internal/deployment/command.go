package deployment

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/source"
)

// Command makes cmd call do with the deployment that f names.
func Command(cmd *cobra.Command, p *source.Program, f *Flags,
	do func(ctx context.Context, io console.Streams, d *Deployment, args []string) error) *cobra.Command {
	f.AddFlags(cmd, p)
	cmd.RunE = console.AtOnce(func(ctx context.Context, io console.Streams, args []string) error {
		return f.Do(ctx, io, Run{}, func(ctx context.Context, d *Deployment) error { return do(ctx, io, d, args) })
	})
	return cmd
}

// Query makes cmd print, as text or JSON, what read returns.
func Query[T any](cmd *cobra.Command, p *source.Program, read func(context.Context, *Deployment, []string) (T, error), text func(io.Writer, T) error) *cobra.Command {
	var as console.Format
	Command(cmd, p, &Flags{}, func(ctx context.Context, streams console.Streams, d *Deployment, args []string) error {
		found, err := read(ctx, d, args)
		if err != nil {
			return err
		}
		return as.Print(streams.Out, found, func(w io.Writer) error { return text(w, found) })
	})
	as.AddFlag(cmd.Flags())
	return cmd
}
