package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/release"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/providers"
)

// addDeployment declares the flags of commands on a deployment.
func addDeployment(cmd *cobra.Command, p *Program, f *deployment.Flags) {
	cmd.Flags().SortFlags = false
	f.AddFlags(cmd, cmd.Flags(), p.Version, p.registries())
	completeName(cmd, "name")
}

// onDeployment makes cmd call do with the deployment that f names.
func onDeployment(cmd *cobra.Command, p *Program, f *deployment.Flags,
	do func(ctx context.Context, io console.Streams, d *deployment.Deployment, args []string) error) *cobra.Command {
	addDeployment(cmd, p, f)
	cmd.RunE = atOnce(func(ctx context.Context, io console.Streams, args []string) error {
		return f.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error { return do(ctx, io, d, args) })
	})
	return cmd
}

// query makes cmd print, as text or JSON, what read returns.
func query[T any](cmd *cobra.Command, p *Program, read func(context.Context, *deployment.Deployment, []string) (T, error), text func(io.Writer, T) error) *cobra.Command {
	var as format
	onDeployment(cmd, p, &deployment.Flags{}, func(ctx context.Context, streams console.Streams, d *deployment.Deployment, args []string) error {
		found, err := read(ctx, d, args)
		if err != nil {
			return err
		}
		return as.print(streams.Out, found, func(w io.Writer) error { return text(w, found) })
	})
	as.addFlag(cmd.Flags())
	return cmd
}

// addSource declares the flags of commands that read a configuration.
func addSource(cmd *cobra.Command, p *Program, s *source.Source) {
	s.Registries = p.registries()
	cmd.Flags().SortFlags = false
	s.AddFlags(cmd.Flags())
	completeName(cmd, "name")
}

// releaseSource is the configuration and the platform release that a command reads without an engine.
type releaseSource struct {
	source  source.Source
	release release.Flags
}

func (s *releaseSource) addFlags(cmd *cobra.Command, p *Program) {
	addSource(cmd, p, &s.source)
	s.release.AddFlags(cmd.Flags())
}

// load reads both. If the release cannot be read here, it returns the configuration and an error.
func (s *releaseSource) load(io console.Streams) (*config.Config, *platform.Release, error) {
	s.source.Release = s.release.Known(s.source.Path)
	cfg, err := s.source.Load(io)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.release.Load(cfg, s.source.Path)
	return cfg, r, err
}

// provider is the provider of a configuration; nil if nothing can be installed to it yet.
func (s *releaseSource) provider(cfg *config.Config) providers.Provider {
	provider, err := s.source.Providers.Get(cfg.Provider)
	if err != nil {
		return nil
	}
	return provider
}

// completeName completes the values of a flag with the names of stored deployments.
func completeName(cmd *cobra.Command, flag string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, deploymentNames); err != nil {
		panic(err) // there is no such flag
	}
}

// deploymentNames returns the deployments with a stored configuration. Completion shows no errors.
func deploymentNames(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	folder, err := config.DefaultFolder()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := folder.Names()
	return names, cobra.ShellCompDirectiveNoFileComp
}

// format is text or json.
type format string

func (f *format) addFlag(set *pflag.FlagSet) {
	*f = "text"
	set.VarP(f, "output", "o", "format of what is printed: text or json")
}

func (f *format) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *format) Set(text string) error {
	if text != "text" && text != "json" {
		return errors.New("give text or json")
	}
	*f = format(text)
	return nil
}

// Type implements pflag.Value.
func (f *format) Type() string { return "string" }

func (f *format) print(w io.Writer, v any, text func(io.Writer) error) error {
	if *f == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	return text(redact.NewPrinter(w))
}

// newTable aligns columns; the caller flushes it.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }
