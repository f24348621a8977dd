package supply

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

// NewClients is slipway clients.
func NewClients() *cobra.Command {
	var out, dir string
	var t images.Trust
	cmd := &cobra.Command{
		Use: "clients --out DIR", Short: "Copy the pinned kubectl, helm, terraform and slipway out of a bundle to a folder", Example: `  slipway clients --out bin`, Args: usage.NoArgs,
		RunE: console.AtOnce(func(ctx context.Context, io console.Streams, _ []string) error {
			return putClients(ctx, io, out, dir, &t)
		}),
		Long: `Copy the pinned kubectl, helm, terraform and slipway for this machine from a bundle to a folder, for
its PATH. It replaces no other program under one of these names.`,
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&out, "out", "", "folder to write them to")
	images.AddBundle(cmd.Flags(), &dir)
	t.AddFlags(cmd.Flags())
	return cmd
}

func putClients(ctx context.Context, io console.Streams, out, from string, t *images.Trust) error {
	if out == "" {
		return usage.Errorf("clients needs --out DIR")
	}
	if from == "" {
		return usage.Errorf("give --bundle DIR or set SLIPWAY_BUNDLE")
	}
	b, err := bundle.Read(from)
	if err != nil {
		return err
	}
	v, err := t.Check(ctx, b)
	if err != nil {
		return err
	}
	if w := v.Warning(); w != "" {
		fmt.Fprintln(io.Err, "warning: "+w)
	}
	done, err := b.PutClients(ctx, out, runtime.GOOS+"/"+runtime.GOARCH)
	if err != nil {
		return err
	}
	w := console.NewTable(io.Text())
	for _, c := range done {
		origin := "from the bundle"
		if c.There {
			origin = "there already"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, c.Version, origin)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	dir, err := filepath.Abs(out)
	if err == nil {
		_, err = fmt.Fprintf(io.Out, "\nNext:\n  export PATH=%s:\"$PATH\"\n", fault.Quote(dir))
	}
	return err
}
