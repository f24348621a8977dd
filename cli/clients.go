package cli

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
	"github.com/slipway-sh/slipway/containers/clients"
	"github.com/slipway-sh/slipway/fault"
)

type clientsOptions struct {
	out, bundle string
	trust       images.Trust
}

func newClients() *cobra.Command {
	var o clientsOptions
	cmd := &cobra.Command{
		Use: "clients --out DIR", Short: "Copy the pinned kubectl, helm, terraform and slipway out of a bundle to a folder", Example: `  slipway clients --out bin`, Args: noArgs, RunE: atOnce(o.run),
		Long: `Copy the pinned kubectl, helm, terraform and slipway out of a bundle for this machine's
system to a folder, for its PATH.

What is there already is left alone; a program of somebody else's under one of the names is not
replaced.`,
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&o.out, "out", "", "folder to write them to")
	images.AddBundle(cmd.Flags(), &o.bundle)
	o.trust.AddFlags(cmd.Flags())
	return cmd
}

func (o *clientsOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	if o.out == "" {
		return usage.Errorf("clients needs --out DIR")
	}
	if o.bundle == "" {
		return usage.Errorf("give --bundle DIR or set SLIPWAY_BUNDLE")
	}
	b, err := bundle.Read(o.bundle)
	if err != nil {
		return err
	}
	v, err := o.trust.Check(ctx, b)
	if err != nil {
		return err
	}
	if w := v.Warning(); w != "" {
		fmt.Fprintln(io.Err, "warning: "+w)
	}
	done, err := clients.Put(ctx, o.out, runtime.GOOS+"/"+runtime.GOARCH, b)
	if err != nil {
		return err
	}
	w := newTable(io.Text())
	for _, c := range done {
		from := "from the bundle"
		if c.There {
			from = "there already"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, c.Version, from)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	dir, err := filepath.Abs(o.out)
	if err == nil {
		_, err = fmt.Fprintf(io.Out, "\nNext:\n  export PATH=%s:\"$PATH\"\n", fault.Quote(dir))
	}
	return err
}
