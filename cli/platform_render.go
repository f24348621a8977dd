package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/release"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

type platformRenderOptions struct {
	program    *Program
	source     source.Source
	release    release.Flags
	images     images.Flags
	components []string
}

func newPlatformRender(p *Program) *cobra.Command {
	o := platformRenderOptions{program: p}
	cmd := &cobra.Command{
		Use: "render", Short: "Print the objects that an install would apply", Example: `  slipway platform render --platform ./shop`, Args: noArgs, RunE: atOnce(o.run),
		Long: `Print the objects that an install would apply, as YAML, in its order; start nothing.

A comment before each says which component it is of, its kind, and the file of the release.
Secrets are without values: <generated>, <given> and the like stand for them, and
` + contract.NotKnown + ` for what only a run finds out. Without --bundle or --lock, digests of
images are not known: they are zeros. What a component takes from the bundle is shown with
--bundle, else a comment stands for it.`,
	}
	addSource(cmd, p, &o.source)
	o.release.AddFlags(cmd.Flags())
	o.images.AddFlags(cmd.Flags())
	cmd.Flags().StringArrayVar(&o.components, "component", nil, "print this component only; may be repeated")
	return cmd
}

func (o *platformRenderOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	o.source.Release = o.release.Known(o.source.Path)
	cfg, err := o.source.Load(io)
	if err != nil {
		return err
	}
	r, err := o.release.Load(cfg, o.source.Path)
	if err == nil {
		_, err = release.Settings(nil, cfg, r)
	}
	if err != nil {
		return err
	}
	for _, name := range o.components {
		if _, ok := r.Component(name); !ok {
			return usage.Errorf("platform %s %s has no component %s", r.Name, r.Version, name)
		}
	}
	input, err := o.renderInput(ctx, cfg, r)
	if err != nil {
		return err
	}
	parts, err := o.program.Render(ctx, r, input)
	if err != nil {
		return fmt.Errorf("render the platform release: %w", err)
	}
	if len(o.components) > 0 {
		parts = slices.DeleteFunc(parts, func(p contract.Rendered) bool { return !slices.Contains(o.components, p.Component) })
	}
	fmt.Fprintf(io.Out, "# %s %s, as deployment %s on %s would install it\n", r.Name, r.Version, cfg.Global.Name, cfg.Provider)
	return printRendered(io.Out, parts)
}

// renderInput is what the release is rendered from.
func (o *platformRenderOptions) renderInput(ctx context.Context, cfg *config.Config, r *platform.Release) (contract.RenderInput, error) {
	provider, err := o.source.Providers.Get(cfg.Provider)
	if err != nil { // nothing can be installed to it yet
		provider = nil
	}
	var known *containers.Images
	var manifests fs.FS
	if o.images.Given() {
		if known, manifests, err = o.images.Describe(ctx, cfg, provider); err != nil {
			return contract.RenderInput{}, err
		}
	}
	in, err := wiringOf(cfg, r, provider, known)
	if err != nil {
		return contract.RenderInput{}, err
	}
	in.UserSecrets = secrets.Names(cfg)
	input, err := stages.Rendering(in, nil)
	if err != nil {
		return input, err
	}
	input.Manifests = manifests
	input.Kubernetes, err = kubernetesVersion()
	return input, err
}

// printRendered writes YAML documents, each below a comment that says what it is of.
func printRendered(w io.Writer, parts []contract.Rendered) error {
	for _, p := range parts {
		what := p.Kind
		if p.Component != "" {
			what = fmt.Sprintf("component %s, kind %s", p.Component, p.Kind)
		}
		if p.Err != nil {
			why := "not known before an install"
			if p.Wrong {
				why = "cannot be installed"
			}
			fmt.Fprintf(w, "---\n# %s\n", redact.OneLine(what+": "+why+": "+p.Err.Error()))
			continue
		}
		for _, o := range p.Objects {
			text, err := yaml.Marshal(o)
			if err != nil {
				return fmt.Errorf("encode an object of %s: %w", p.File, err)
			}
			fmt.Fprintf(w, "---\n# %s\n%s", redact.OneLine(what+": "+p.File), text)
		}
	}
	return nil
}
