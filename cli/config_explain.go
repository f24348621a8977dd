package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/release"
	"github.com/slipway-sh/slipway/cli/internal/source"
)

type configExplainOptions struct {
	source  source.Source
	release release.Flags
	format  format
}

func newConfigExplain(p *Program) *cobra.Command {
	var o configExplainOptions
	cmd := &cobra.Command{Use: "explain", Short: "Show each value and where it comes from", Example: `  slipway config explain --config slipway.yaml`, Args: noArgs, RunE: atOnce(o.run)}
	addSource(cmd, p, &o.source)
	o.source.AddState(cmd.Flags())
	o.release.AddFlags(cmd.Flags())
	o.format.addFlag(cmd.Flags())
	return cmd
}

func (o *configExplainOptions) run(_ context.Context, streams console.Streams, _ []string) error {
	cfg, err := o.source.Load(streams)
	if err != nil {
		return err
	}
	all, err := cfg.Explain()
	if err != nil {
		return err
	}
	found, err := o.release.Load(cfg, o.source.Path)
	if err != nil {
		return err
	}
	if all, err = release.Settings(all, cfg, found); err != nil {
		return err
	}
	return o.format.print(streams.Out, all, func(out io.Writer) error {
		w := newTable(out)
		fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
		for _, s := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Path, s.Value, s.Origin)
		}
		return w.Flush()
	})
}
