package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/docs"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

type platformInitOptions struct{ name string }

func newPlatformInit() *cobra.Command {
	var o platformInitOptions
	cmd := &cobra.Command{
		Use: "init DIR", Short: "Create a small platform release that installs as it is", Example: `  slipway platform init shop`,
		Long: `Create a platform release to start from, in a new or empty directory: platform.yaml with comments,
and its files. It has a component of manifests with a gate, a chart, and a job after both. It
installs as it is, with images of every bundle. The next steps are in docs/platforms.md of the
repository.`,
		Args: usage.Takes(1, 1, "give the directory of the new platform release"), RunE: console.AtOnce(o.run),
	}
	cmd.Flags().StringVar(&o.name, "name", "", "name of the platform and of its namespace; default: the directory's name")
	return cmd
}

func (o *platformInitOptions) run(_ context.Context, io console.Streams, args []string) error {
	dir := args[0]
	name, err := o.platformName(dir)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if len(entries) > 0 {
		return usage.Errorf("%s holds %s; give a directory that does not exist or is empty", dir, entries[0].Name())
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = writeSkeleton(dir, name)
	}
	if err != nil {
		return &fault.Fault{Code: atomicfile.CodeUnwritten, Class: fault.Usage, Op: "write the platform release " + dir, Err: err,
			Fix: "choose another directory, or make that one writable for you, then run again: slipway platform init DIR"}
	}
	deployment := name
	if !config.IsName(name) {
		deployment = "my-platform"
	}
	fmt.Fprintf(io.Text(), "%s is the platform release %s; %s says what it installs\n\nNext:\n  slipway validate --platform %[4]s\n  slipway install --platform %[4]s --name %[5]s\n",
		dir, name, filepath.Join(dir, platform.File), fault.Quote(dir), fault.Quote(deployment))
	return nil
}

// platformName is the name that the platform gets.
func (o *platformInitOptions) platformName(dir string) (string, error) {
	name, from := o.name, "--name is"
	if name == "" {
		path, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		name, from = filepath.Base(path), "the directory's name is"
	}
	if want := platform.NamespaceWant(name); want != "" {
		return "", usage.Errorf("%s %q, want %s: slipway platform init DIR --name NAME", from, name, want)
	}
	return name, nil
}

func newPlatformSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of platform.yaml", Example: `  slipway platform schema > platform.schema.json`, Args: usage.NoArgs,
		RunE: console.AtOnce(func(_ context.Context, io console.Streams, _ []string) error {
			_, err := fmt.Fprint(io.Out, docs.PlatformSchema())
			return err
		}),
	}
}

type platformRenderOptions struct {
	source.Local
	images     images.Flags
	components []string
}

func newPlatformRender(p *Program) *cobra.Command {
	var o platformRenderOptions
	cmd := &cobra.Command{
		Use: "render", Short: "Print the objects that an install would apply", Example: `  slipway platform render --platform ./shop`, Args: usage.NoArgs, RunE: console.AtOnce(o.run),
		Long: `Print the objects that an install would apply, as YAML, in its order; start nothing.

A comment before each has its component, its kind, and its file in the release. Placeholders such as
<generated> and <given> replace the values of Secrets, and ` + contract.NotKnown + ` what only a run
finds out. Without --bundle or --lock, digests of images are zeros. Without --bundle, a comment
replaces what a component takes from the bundle.`,
	}
	o.Declare(cmd, p)
	o.images.AddFlags(cmd.Flags())
	cmd.Flags().StringArrayVar(&o.components, "component", nil, "print this component only; may be repeated")
	return cmd
}

func (o *platformRenderOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	cfg, r, err := o.Load(io)
	if err == nil {
		_, err = source.Settings(nil, cfg, r)
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
	parts, err := o.Source.Render(ctx, r, input)
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
	provider := o.Provider(cfg)
	var known *containers.Images
	var manifests fs.FS
	var err error
	if o.images.Given() {
		if known, manifests, err = o.images.Describe(ctx, cfg, provider); err != nil {
			return contract.RenderInput{}, err
		}
	}
	in, err := source.Wiring(cfg, r, provider, known)
	if err != nil {
		return contract.RenderInput{}, err
	}
	in.UserSecrets = secrets.Names(cfg)
	input, err := stages.Rendering(in, nil)
	if err == nil {
		input.Order, err = stages.Order(in)
	}
	if err != nil {
		return input, err
	}
	input.Manifests = manifests
	input.Kubernetes, err = source.KubernetesVersion()
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
