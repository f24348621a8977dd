package source

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// Program is what the program consists of besides its commands.
type Program struct {
	// Version is "dev" where none is known; the beginning of Source then follows it.
	Version string
	// Source is the digest of the program's sources, "sha256:<hex>"; empty unless make built it.
	Source    string
	Providers *providers.Registry
	// Stores open the buckets with deployments' state, by the scheme of their URLs.
	Stores map[string]store.Opener
	// Steps are those that run in containers, whose state is in one of these stores.
	Steps func(map[string]store.Opener) *step.Registry
	// Contents finds the images that a platform release runs, and what else matters beforehand.
	Contents func(context.Context, *platform.Release, contract.RenderInput) (contract.Contents, error)
	// Render renders what an install of a platform release applies.
	Render func(context.Context, *platform.Release, contract.RenderInput) ([]contract.Rendered, error)
}

// Local is the configuration and the platform release that a command reads without an engine.
type Local struct {
	Source  Source
	Release Release
}

// Declare declares the flags of both.
func (l *Local) Declare(cmd *cobra.Command, p *Program) {
	l.Source.Declare(cmd, p)
	l.Release.AddFlags(cmd.Flags())
}

// Load reads both. If the release cannot be read here, it returns the configuration and an error.
func (l *Local) Load(io console.Streams) (*config.Config, *platform.Release, error) {
	l.Source.Release = l.Release.Known(l.Source.Path)
	cfg, err := l.Source.Load(io)
	if err != nil {
		return nil, nil, err
	}
	r, err := l.Release.Load(cfg, l.Source.Path)
	return cfg, r, err
}

// Provider is the provider of a configuration; nil if nothing can be installed to it yet.
func (l *Local) Provider(cfg *config.Config) providers.Provider {
	provider, err := l.Source.Providers.Get(cfg.Provider)
	if err != nil {
		return nil
	}
	return provider
}

// CompleteName completes the values of a flag with the names of stored deployments.
func CompleteName(cmd *cobra.Command, flag string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, Names); err != nil {
		panic(err) // there is no such flag
	}
}

// Names returns the deployments with a stored configuration. Completion shows no errors.
func Names(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	folder, err := config.DefaultFolder()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := folder.Names()
	return names, cobra.ShellCompDirectiveNoFileComp
}
