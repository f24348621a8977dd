package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/release"
	"github.com/slipway-sh/slipway/cli/internal/source"
)

type validateOptions struct {
	source  source.Source
	release release.Flags
}

func newValidate(p *Program) *cobra.Command {
	o := validateOptions{source: source.Source{Registries: p.registries()}}
	cmd := &cobra.Command{Use: "validate", Short: "Checks a configuration; starts nothing", Args: noArgs, RunE: run("", o.run)}
	addSource(cmd, cmd.Flags(), &o.source)
	o.release.AddFlags(cmd.Flags())
	return cmd
}

func (o *validateOptions) run(_ context.Context, io console.Streams, _ []string) error {
	cfg, err := o.source.Load(io)
	if err != nil {
		return err
	}
	found, err := o.release.Load(cfg, o.source.Path)
	if err == nil {
		_, err = release.Settings(nil, cfg, found)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Out, "valid: deployment %s on %s, platform %s\n", cfg.Global.Name, cfg.Provider, cfg.Platform.Release)
	return nil
}
