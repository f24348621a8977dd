package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

type validateOptions struct {
	source.Local
	images  images.Flags
	secrets secrets.Flags
}

func newValidate(p *Program) *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{Use: "validate", Short: "Check a configuration and its platform release; start nothing", Example: `  slipway validate --config slipway.yaml --platform ./shop`, Args: usage.NoArgs, RunE: console.AtOnce(o.run), Long: `Check a configuration and the platform release that it installs; start nothing.

It renders charts, manifests and kustomizations, and checks the fields of Kubernetes' own kinds. Only
the install can check the fields of other kinds. It looks for the Services of links, checks and gates,
and for what gates wait for, in the rendered components. With a bundle or a lock, it also checks that
the bundle or the registry has every image of the release.

It warns of values that look like secrets, of hooks that seem to use the cluster without asking for it,
and of a GitOps project that lists no kinds, or has roles or bindings among clusterKinds: a push to
the tree then gives rights.`}
	o.Declare(cmd, p)
	o.images.AddFlags(cmd.Flags())
	o.secrets.AddFlags(cmd.Flags())
	return cmd
}

func (o *validateOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	cfg, found, err := o.Load(io)
	if errors.Is(err, &fault.Fault{Code: source.CodeFetch}) {
		source.Warn(io.Err, cfg)
		fmt.Fprintf(io.Text(), "valid: deployment %s on %s   (the platform release is fetched and checked when it is installed)\n", cfg.Global.Name, cfg.Provider)
		return nil
	}
	if err != nil {
		return err
	}
	note, provider := "", o.Provider(cfg)
	if provider == nil {
		note = fmt.Sprintf("   (nothing can be installed to %s yet)", cfg.Provider)
	}
	if err := console.Together(o.configuration(cfg, found, provider), o.content(ctx, io, cfg, found, provider)); err != nil {
		return err
	}
	source.Warn(io.Err, cfg)
	for _, p := range found.Doubts() {
		fmt.Fprintf(io.Err, "warning: %s: %s: %s\n", contract.Position(found.Path(platform.File), p.Line), p.Field, p.Reason())
	}
	fmt.Fprintf(io.Text(), "valid: deployment %s on %s, platform %s %s%s\n", cfg.Global.Name, cfg.Provider, found.Name, found.Version, note)
	return nil
}

// configuration checks a configuration against the release. provider is nil if it cannot install yet.
func (o *validateOptions) configuration(cfg *config.Config, r *platform.Release, provider providers.Provider) error {
	_, err := source.Settings(nil, cfg, r)
	in, unfit := source.Wiring(cfg, r, provider, nil)
	if unfit == nil {
		_, unfit = stages.Nodes(stages.Install(), in)
	}
	err = console.Together(err, unfit, o.secrets.Check(cfg), o.checkCertificate(cfg, r, time.Now()))
	if provider == nil {
		return err
	}
	return console.Together(err, stages.CheckSteps(provider, cfg, r), o.checkAccess(provider, cfg))
}

// content checks the files of the release and its images. It skips a configuration that does not fit the release,
// which configuration reports.
func (o *validateOptions) content(ctx context.Context, io console.Streams, cfg *config.Config, r *platform.Release, provider providers.Provider) error {
	_, err := r.Off(cfg.Choices())
	if errors.Join(err, r.Overrides(cfg.Overrides()), r.CheckSettings(cfg.Platform.Settings)) != nil {
		return nil
	}
	check := source.Check{Program: o.Source.Program, Config: cfg, Release: r, Provider: provider, Bundle: o.images.Bundle}
	var unknown error // where the images are
	if o.images.Given() {
		if known, manifests, err := o.images.Describe(ctx, cfg, provider); err != nil {
			unknown = err
		} else {
			check.Images, check.Manifests, check.Registry = known, manifests, known.Registry != nil
		}
	}
	return console.Together(check.Everything(ctx, io.Err, io.Err), unknown)
}

// checkAccess checks the access to an existing cluster, if this machine has it.
func (o *validateOptions) checkAccess(provider providers.Provider, cfg *config.Config) error {
	environment, err := stages.EnvironmentOf(provider, stages.DeploymentOf(cfg))
	if err != nil || environment.External == nil {
		return err
	}
	return o.secrets.CheckKubeconfig(*environment.External)
}

// checkCertificate checks the user's certificate, with its key if this machine has it.
func (o *validateOptions) checkCertificate(cfg *config.Config, r *platform.Release, now time.Time) error {
	if cfg.TLS.Mode != config.UserCertificate {
		return nil
	}
	off, err := r.Off(cfg.Choices())
	if err != nil {
		return err
	}
	hosts := r.Hosts(cfg.Global.Domain, cfg.Global.Name, off)
	key, err := o.secrets.AtHand(cfg.TLS.Key)
	if err != nil {
		return err
	}
	errs := certificate.Given([]byte(cfg.TLS.Certificate), key, []byte(cfg.TLS.CA), hosts, now)
	if len(errs) == 0 {
		return nil
	}
	return certificate.Invalid(errors.Join(errs...))
}
