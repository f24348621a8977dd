package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/release"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/docs"
)

func newSchema(p *Program) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of the configuration", Example: `  slipway schema > config.schema.json`, Args: noArgs,
		RunE: atOnce(func(_ context.Context, io console.Streams, _ []string) error {
			text, err := config.Schema(p.Providers.Sections())
			if err == nil {
				_, err = io.Out.Write(text)
			}
			return err
		}),
	}
}

func newPlatformSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of platform.yaml", Example: `  slipway platform schema > platform.schema.json`, Args: noArgs,
		RunE: atOnce(func(_ context.Context, io console.Streams, _ []string) error {
			_, err := fmt.Fprint(io.Out, docs.PlatformSchema())
			return err
		}),
	}
}

func newConfigExplain(p *Program) *cobra.Command {
	var from source.Source
	var at release.Flags
	var as format
	cmd := &cobra.Command{
		Use: "explain", Short: "Show each value and where it comes from", Example: `  slipway config explain --config slipway.yaml`, Args: noArgs,
		RunE: atOnce(func(_ context.Context, streams console.Streams, _ []string) error {
			cfg, err := from.Load(streams)
			if err != nil {
				return err
			}
			all, err := cfg.Explain()
			if err != nil {
				return err
			}
			r, err := at.Load(cfg, from.Path)
			if err == nil {
				all, err = release.Settings(all, cfg, r)
			}
			if err != nil {
				return err
			}
			return as.print(streams.Out, all, func(out io.Writer) error { return listSettings(out, all) })
		}),
	}
	addSource(cmd, p, &from)
	from.AddState(cmd.Flags())
	at.AddFlags(cmd.Flags())
	as.addFlag(cmd.Flags())
	return cmd
}

// listSettings prints a line per value.
func listSettings(out io.Writer, all []config.Setting) error {
	w := newTable(out)
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Path, s.Value, s.Origin)
	}
	return w.Flush()
}
