package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// codeNotPulled: the nodes of an existing cluster cannot use a bundle, or would pull from public registries.
const codeNotPulled fault.Code = "IMG-008"

// Check checks a platform release before anything starts, and compares its images with those of a run.
type Check struct {
	Program   *Program
	Config    *config.Config
	Release   *platform.Release
	Provider  providers.Provider // nil if it cannot install yet
	Images    *containers.Images // nil: they are not compared, only the release's files are read
	Manifests fs.FS              // the bundle's; nil if not at hand
	Bundle    string             // directory of the bundle, for the remedy; empty if it is not known
	Registry  bool               // images come from a registry
	Known     bool               // an earlier run had the release: what its gates wait for is not checked
}

// Missing are the images that the run lacks. It fails if files of the release are wrong.
func (c Check) Missing(ctx context.Context, w io.Writer) ([]contract.ImageUse, error) {
	_, has, err := c.contents(ctx)
	if err != nil {
		return nil, err
	}
	return c.without(has.Images), findings(w, c.Release, imagesUnknown, has)
}

// without removes duplicates and the images that the run has.
func (c Check) without(uses []contract.ImageUse) []contract.ImageUse {
	missing := slices.DeleteFunc(slices.Clone(uses), func(u contract.ImageUse) bool { return c.Images.Has(u.Image) })
	return slices.CompactFunc(missing, func(a, b contract.ImageUse) bool {
		b.Kept = a.Kept
		return a == b
	})
}

// contents returns what the release contains, and what its steps are wired from.
func (c Check) contents(ctx context.Context) (in contract.Inputs, has contract.Contents, err error) {
	if in, err = Wiring(c.Config, c.Release, c.Provider, c.Images); err != nil {
		return in, has, err
	}
	shown := in
	shown.Rewrite = nil // it is about what the objects name
	input, err := stages.Rendering(shown, &contract.Infrastructure{StorageClass: "standard"})
	if err == nil {
		input.Manifests, input.Known = c.Manifests, c.Known
		input.Kubernetes, err = KubernetesVersion()
	}
	if err != nil {
		return in, has, err
	}
	if has, err = c.Program.Contents(ctx, c.Release, input); err != nil {
		err = fmt.Errorf("find the images of the platform release: %w", err)
	}
	return in, has, err
}

// unenforced notes that a local cluster does not enforce the release's NetworkPolicies.
func (c Check) unenforced(w io.Writer, in contract.Inputs, has contract.Contents) {
	if in.Environment.Local != nil && len(has.Policies) > 0 {
		fmt.Fprintf(w, "note: the cluster of provider %s enforces no NetworkPolicy, so every Pod reaches the Pods of %s\n",
			c.Config.Provider, redact.OneLine(strings.Join(has.Policies, ", ")))
	}
}

// checkPulls fails unless the nodes of an existing cluster find every image in the registry. Objects that Slipway does
// not apply must name it themselves.
func (c Check) checkPulls(uses []contract.ImageUse) error {
	op := fmt.Sprintf("bring the images of %s %s to the cluster", c.Release.Name, c.Release.Version)
	if !c.Registry {
		return &fault.Fault{Code: codeNotPulled, Class: fault.Usage, Op: op,
			Err: fmt.Errorf("the nodes of an existing cluster (provider %s) pull images from a registry, not from a bundle", c.Config.Provider),
			Fix: "push the bundle to a registry that the nodes reach, and use the lock file that this writes: slipway bundle push DIR registry.example.com/slipway; slipway install --lock slipway.lock.json"}
	}
	if c.Config.Advanced.MissingImages == config.PullMissing { // the nodes may pull from public registries
		return nil
	}
	rewritten := map[contract.ImageUse]bool{}
	for _, u := range uses {
		if !u.Kept {
			rewritten[contract.ImageUse{Component: u.Component, Image: u.Image}] = true
		}
	}
	var list []error
	for _, u := range uses {
		declared := u.File == platform.File && rewritten[contract.ImageUse{Component: u.Component, Image: u.Image}]
		if u.Kept && !declared && c.Images.Has(u.Image) && !c.Images.Own(u.Image) {
			list = append(list, named(c.Release, u))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &fault.Fault{Code: codeNotPulled, Class: fault.Preflight, Op: op,
		Err: errors.Join(append([]error{fmt.Errorf("%d references stay as they are in the cluster, whose nodes Slipway does not configure", len(list))}, list...)...),
		Fix: "name the image in the registry in the values of that component; or give the nodes a mirror for these, or access to their registries, and set advanced.missingImages: pull"}
}

// Wiring returns what is known of a deployment without an engine. provider and images may be nil.
func Wiring(cfg *config.Config, r *platform.Release, provider providers.Provider, images *containers.Images) (contract.Inputs, error) {
	environment, err := stages.EnvironmentOf(provider, stages.DeploymentOf(cfg))
	if err != nil {
		return contract.Inputs{}, err
	}
	in := contract.Inputs{Config: cfg, Release: r, Environment: environment}
	if images != nil {
		in.Images, in.Rewrite = images.In(environment.Local != nil)
	}
	return in, nil
}

// KubernetesVersion is the version of a local cluster.
func KubernetesVersion() (string, error) {
	pins, err := lock.Load()
	if err != nil {
		return "", err
	}
	node, _ := pins.Image("node")
	return node.Version, nil
}

// Everything reports all errors in the release's files, and each image that the run lacks. If the cluster may pull
// images, it only prints them on w. notes gets what is no problem.
func (c Check) Everything(ctx context.Context, w, notes io.Writer) error {
	in, has, err := c.contents(ctx)
	if err != nil {
		return err
	}
	c.unenforced(notes, in, has)
	if c.Images == nil {
		return findings(w, c.Release, filesUnknown, has)
	}
	wrong := findings(w, c.Release, imagesUnknown, has)
	var pulled error
	if in.Environment.External != nil {
		pulled = c.checkPulls(has.Images)
	}
	return console.Together(wrong, c.all(w, c.without(has.Images)), pulled)
}

// all fails if images are missing, unless the cluster may pull them.
func (c Check) all(w io.Writer, missing []contract.ImageUse) error {
	if len(missing) == 0 {
		return nil
	}
	list := make([]error, len(missing))
	short := false
	for i, u := range missing {
		list[i] = named(c.Release, u)
		short = short || imageref.IsShort(u.Image)
	}
	if c.Config.Advanced.MissingImages == config.PullMissing {
		fmt.Fprintf(w, "the cluster has to pull these itself:\n%v\n", errors.Join(list...))
		return nil
	}
	from := "bundle"
	if c.Registry {
		from = "registry"
	}
	return &fault.Fault{
		Code: contract.CodeNoImage, Class: fault.Preflight, Op: fmt.Sprintf("find the images of %s %s in the %s", c.Release.Name, c.Release.Version, from),
		Err: errors.Join(append([]error{fmt.Errorf("%s not there", countImages(missing))}, list...)...), Fix: c.remedy(short),
	}
}

// named describes where an image is used.
func named(r *platform.Release, u contract.ImageUse) error {
	return errors.New(redact.OneLine(fmt.Sprintf("%s (%s): %s", owner(u.Component), PlaceOf(r, u), u.Image)))
}

// PlaceOf is where a release names an image: "shop/web.yaml, line 3".
func PlaceOf(r *platform.Release, u contract.ImageUse) string {
	return contract.Position(r.Path(u.File), u.Line)
}

// countImages counts images, which several files may name.
func countImages(missing []contract.ImageUse) string {
	images := map[string]bool{}
	for _, u := range missing {
		images[u.Image] = true
	}
	if len(images) == 1 {
		return "1 image is"
	}
	return fmt.Sprintf("%d images are", len(images))
}

// remedy tells how to add the missing images. short: some have short names, which only a new bundle has.
func (c Check) remedy(short bool) string {
	push := "slipway bundle push %s " + fault.Quote(strings.TrimSuffix(c.Config.Advanced.Registry, "/"))
	switch {
	case short:
		fix := "build a bundle with the images of short names: make bundle PLATFORM=DIR; then add the others to it: slipway bundle add BUNDLE"
		if c.Registry {
			fix += "; then push it, and use the lock that this writes: " + fmt.Sprintf(push, "BUNDLE")
		}
		return fix + "; or name images as in a manifest: docker.io/library/redis:8.2"
	case c.Registry:
		return "add them to the bundle: slipway bundle add DIR (where there is no network, each from a file: slipway bundle add DIR REF=FILE); then push it, and use the lock that this writes: " + fmt.Sprintf(push, "DIR")
	}
	dir := cmp.Or(c.Bundle, "DIR")
	return "add them to the bundle: slipway bundle add " + fault.Quote(dir) + "; where there is no network, each from a file, an archive of docker save or an OCI layout: slipway bundle add " + fault.Quote(dir) + " REF=FILE; or let the cluster pull them: advanced.missingImages: pull"
}

// The formats for components that only a cluster knows completely.
const (
	imagesUnknown = "the images of %s are not known before the install: %s\n"
	filesUnknown  = "what comes with %s is not known before the install: %s\n"
)

// findings prints warnings and what only a cluster knows, in the format unknown, and returns all errors in files.
func findings(w io.Writer, r *platform.Release, unknown string, has contract.Contents) error {
	for _, d := range has.Doubts {
		fmt.Fprintf(w, "warning: %v\n", unreadOf(r, d))
	}
	var wrong []error
	for _, u := range has.Unread {
		if u.Wrong() {
			wrong = append(wrong, unreadOf(r, u))
		} else {
			fmt.Fprintf(w, unknown, redact.OneLine(u.Component), redact.OneLine(u.Err.Error()))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	if len(wrong) > 1 {
		wrong = append([]error{fmt.Errorf("%d problems", len(wrong))}, wrong...)
	}
	return &fault.Fault{
		Code: contract.CodeUnusable, Class: fault.Usage, Op: fmt.Sprintf("read what %s %s is made of", r.Name, r.Version),
		Err: errors.Join(wrong...), Fix: "correct the files of the platform release that are listed",
	}
}

// unreadOf describes a problem in a file of a release.
func unreadOf(r *platform.Release, u contract.Unread) error {
	at := contract.Position(r.Path(u.File), u.Line)
	if u.Component != "" {
		at = owner(u.Component) + " (" + at + ")"
	}
	return errors.New(redact.OneLine(at + ": " + u.Err.Error()))
}

// owner names the owner of a file: a component, or a description with spaces.
func owner(name string) string {
	if strings.Contains(name, " ") {
		return name
	}
	return "component " + name
}
