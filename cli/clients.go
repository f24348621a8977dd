package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/clients"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
)

type clientsOptions struct {
	out, bundle string
	trust       images.Trust
}

func newClients() *cobra.Command {
	var o clientsOptions
	cmd := &cobra.Command{
		Use: "clients --out DIR", Short: "Copy the pinned kubectl, helm, terraform and slipway for this machine to a folder", Example: `  slipway clients --out bin`, Args: noArgs, RunE: atOnce(o.run),
		Long: `Copy the pinned kubectl, helm, terraform and slipway for this machine to a folder, for
its PATH.

They come out of the bundle if it is for this machine's system, else as the vendors released
them, by the digests of the lock; slipway is then this program. One that neither has is
named, with exit code 3, after the others were put. What is there already is left alone; a
program of somebody else's under one of the names is not replaced.`,
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
	put := clients.Options{Dir: o.out, Platform: runtime.GOOS + "/" + runtime.GOARCH, Say: func(text string) { fmt.Fprintln(io.Err, text) }}
	var err error
	if put.Pins, err = lock.Load(); err != nil {
		return err
	}
	if o.bundle != "" {
		if put.Bundle, err = bundle.Read(o.bundle); err != nil {
			return err
		}
		v, err := o.trust.Check(ctx, put.Bundle)
		if err != nil {
			return err
		}
		if w := v.Warning(); w != "" {
			put.Say("warning: " + w)
		}
	}
	if put.Program, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	done, err := clients.Put(ctx, put)
	w := newTable(io.Text())
	for _, c := range done {
		from := "from " + c.From
		if c.There {
			from = "there already"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, c.Version, from)
	}
	if err := together(err, w.Flush()); err != nil {
		return err
	}
	dir, err := filepath.Abs(o.out)
	if err == nil && runtime.GOOS != "windows" {
		_, err = fmt.Fprintf(io.Out, "\nNext:\n  export PATH=%s:\"$PATH\"\n", fault.Quote(dir))
	}
	return err
}
