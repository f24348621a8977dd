// Package lint finds what a platform release brings into a cluster, the images that it runs, and
// what is wrong with its files, without a cluster: it renders charts and manifests as the steps do.
package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/imageref"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// absent stands for an image that is not known by a short name, so that the rest can be
// rendered: it has the form of the references that are known.
const absent = "slipway.local/%s@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// Tree is the GitOps tree as it would be pushed.
type Tree struct {
	Files  map[string][]byte // by path
	Chart  string            // directory of the chart that makes the Applications
	Values string            // file in it with the chart's values
}

// BuildTree makes the GitOps tree of a release.
type BuildTree func(r *platform.Release, deployment string, in contract.TreeValues) (Tree, error)

// linter collects what components run and what they bring about.
type linter struct {
	contract.RenderInput
	release *platform.Release
	uses    []contract.ImageUse
	unread  []contract.Unread
	limited []string          // components with NetworkPolicies
	doubts  []contract.Unread // fields that are probably wrong
	shown   []contract.Rendered
	off     bool                   // of a component that is switched off
	absent  map[string]bool        // what stands for images that are not known
	origins map[kube.Member]origin // of each object that Slipway applies
}

// Contents is what the components of a release and its tests run and have, and what an install
// applies, in its order. What is wrong with the release's files is among what is unread. An
// error is one of this machine.
func Contents(ctx context.Context, r *platform.Release, s contract.RenderInput, build BuildTree, objects MakeObjects) (contract.Contents, error) {
	v := &linter{RenderInput: s, release: r}
	if err := v.installed(ctx, build, objects); err != nil {
		return contract.Contents{}, err
	}
	rendered := slices.Clone(v.shown)
	slices.SortStableFunc(rendered, func(a, b contract.Rendered) int { return v.place(a) - v.place(b) })
	for _, in := range s.Suites {
		c, err := v.part(in.Component)
		if err != nil {
			return contract.Contents{}, err
		}
		v.declared(c)
		if err := v.look(ctx, c.Name, c.Path, func() error { return v.manifests(ctx, c, v.complete(c, in)) }); err != nil {
			return contract.Contents{}, err
		}
	}
	for _, in := range s.Off {
		if err := v.unused(ctx, in); err != nil {
			return contract.Contents{}, err
		}
	}
	v.homeless()
	if !s.Known {
		v.targets(rendered)
	}
	slices.SortFunc(v.uses, func(a, b contract.ImageUse) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	slices.Sort(v.limited)
	return contract.Contents{Images: slices.Compact(v.uses), Unread: v.unread, Policies: slices.Compact(v.limited), Doubts: v.doubts, Rendered: rendered}, nil
}

// installed looks at all that an install applies.
func (v *linter) installed(ctx context.Context, build BuildTree, objects MakeObjects) error {
	v.prerequisites()
	v.completeApps()
	v.forApps(objects)
	for _, in := range v.Components {
		c, err := v.part(in.Component)
		if err != nil {
			return err
		}
		v.declared(c)
		if err := v.look(ctx, c.Name, c.Path, func() error { return v.component(ctx, c, in) }); err != nil {
			return err
		}
	}
	if v.Apps == nil {
		return nil
	}
	return v.apps(ctx, build)
}

// look limits the time for a component: what it renders to may take endless to be looked at.
func (v *linter) look(ctx context.Context, name, file string, do func() error) error {
	most := bounded.Usual()
	most.Time *= 5 // a chart is rendered several times
	_, err := bounded.Work(ctx, most, func() (struct{}, error) { return struct{}{}, do() })
	return cmp.Or(ended(ctx, name, file, err), err)
}

// part is a component, or what a test or workload is made of.
func (v *linter) part(name string) (platform.Component, error) {
	c, ok := v.release.Part(name)
	if !ok {
		return c, fmt.Errorf("platform %s has no component %s", v.release.Name, name)
	}
	return c, nil
}

// declared notes the images that the component itself names.
func (v *linter) declared(c platform.Component) {
	for i, image := range c.Images {
		use := contract.ImageUse{Component: c.Name, File: platform.File, Kept: !imageref.IsShort(image)}
		if _, ok := v.release.Component(c.Name); ok {
			use.Line = v.field(c.Name, fmt.Sprintf("images[%d]", i))
		}
		if normal, err := imageref.Normal(image); use.Kept && err == nil { // a release with another one is refused
			image = normal
		}
		v.note(use, image)
	}
}

// note notes that images are used.
func (v *linter) note(use contract.ImageUse, images ...string) {
	for _, image := range images {
		if !v.absent[image] {
			of := use
			of.Image, of.Line = image, cmp.Or(use.Line, lineNaming(v.release.Files(), use.File, image))
			v.uses = append(v.uses, of)
		}
	}
}

// lineNaming is the line of a file that names an image as it is; 0 if none does.
func lineNaming(files fs.FS, name, image string) int {
	text, err := bounded.FS(files, name, bounded.Generated)
	if err != nil {
		return 0
	}
	for i, line := range strings.Split(string(text), "\n") {
		words := strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" \t\r\"'{}[],", c) })
		if !strings.HasPrefix(strings.TrimSpace(line), "#") && slices.Contains(words, image) {
			return i + 1
		}
	}
	return 0
}

// placeholder is what stands for an image that no short name is known for.
func (v *linter) placeholder(name string) string {
	if v.absent == nil {
		v.absent = map[string]bool{}
	}
	ref := fmt.Sprintf(absent, name)
	v.absent[ref] = true
	return ref
}

// skip notes that a component's images and objects cannot be found.
func (v *linter) skip(component string, err error) {
	v.unread = append(v.unread, contract.Unread{Component: component, Err: err})
	v.shown = append(v.shown, contract.Rendered{Component: component, Kind: v.kind(component), Err: err})
}

// unused looks for what is wrong with the files of a component that is switched off. The
// values of its chart may be for users who switch it on to give.
func (v *linter) unused(ctx context.Context, in contract.ComponentInput) error {
	c, err := v.part(in.Component)
	if err != nil {
		return err
	}
	alone := &linter{RenderInput: v.RenderInput, release: v.release, off: true}
	if err := alone.look(ctx, c.Name, c.Path, func() error { return alone.component(ctx, c, in) }); err != nil {
		return err
	}
	for _, u := range alone.unread {
		if u.Wrong() {
			v.wrong(u.Component, u.File, u.Line, u.Err)
		}
	}
	return nil
}

// component finds the images of a component that Slipway installs.
func (v *linter) component(ctx context.Context, c platform.Component, in contract.ComponentInput) error {
	in = v.complete(c, in)
	switch c.Kind {
	case platform.Chart, platform.Adopted:
		values, err := render.Values(v.release.Files(), c, in)
		if err != nil && v.badValues(c, in, err) {
			return nil
		}
		of := chart{component: c.Name, files: v.release.Files(), dir: c.Path, path: c.Path, release: c.Name, namespace: c.Namespace, values: values, in: in}
		if c.Kind == platform.Adopted { // it is Argo CD's in the end, which replaces no reference
			of.in, of.kept = contract.ComponentInput{}, true
		}
		_, err = v.chart(ctx, of)
		return err
	case platform.Manifests, platform.Job:
		return v.manifests(ctx, c, in)
	case platform.AppSet:
		err := v.manifests(ctx, c, in)
		v.unread = append(v.unread, contract.Unread{Component: c.Name, Err: errors.New("the cluster decides which Applications that is")})
		return err
	}
	return nil
}

// complete puts something in the place of images that no short name is known for.
func (v *linter) complete(c platform.Component, in contract.ComponentInput) contract.ComponentInput {
	fill, images := map[string]any{}, map[string]string{}
	maps.Copy(fill, in.Fill)
	maps.Copy(images, in.Images)
	for _, hole := range c.Holes() {
		if name, ok := platform.ImageHole(hole); ok && fill[hole] == nil {
			fill[hole] = v.placeholder(name)
		}
	}
	v.fillImages(images, c)
	maps.Copy(images, in.Rewrite)
	in.Fill, in.Images = fill, images
	return in
}

// fillImages puts something in the place of a component's images that are not known.
func (v *linter) fillImages(images map[string]string, c platform.Component) {
	for _, name := range c.ImageNames() {
		if images[name] == "" {
			images[name] = v.placeholder(name)
		}
	}
}

// manifests finds the images of a component's files. What the bundle's manifests run, the
// bundle and the lock have.
func (v *linter) manifests(ctx context.Context, c platform.Component, in contract.ComponentInput) error {
	whole := c.Bundle == "" // else the component has more than the release's files
	if !whole && v.Manifests == nil {
		v.shown = append(v.shown, contract.Rendered{Component: c.Name, Kind: v.kind(c.Name), Err: errors.New("they are those of a bundle, and none is given: --bundle DIR")})
		if c.Bundle = ""; c.Path == "" {
			return nil
		}
	}
	patches := !whole && c.Bundle == "" // of objects that are not at hand
	sources, err := render.Sources(ctx, v.release.Files(), v.Manifests, c)
	if err != nil {
		if err := ended(ctx, c.Name, c.Path, err); err != nil {
			return err
		}
		v.unreadable(c, err)
		return nil
	}
	var all []*unstructured.Unstructured
	for _, s := range sources {
		all = append(all, s.Objects...)
		v.fields(c, s, patches)
		render.SetImages(s.Objects, in.Images)
		for _, image := range render.Images(s.Objects) {
			v.note(contract.ImageUse{Component: c.Name, File: naming(v.release.Files(), cmp.Or(c.Path, "manifests/"+c.Bundle), image)}, image)
		}
		if !patches {
			v.file(c.Name, s.Name, c.Namespace, in.Hosts, s.Objects)
		}
		if c.Bundle == "" {
			v.conflicts(c.Name, s.Name, 0, c.Namespace, s.Objects)
		} else {
			v.conflicts(c.Name, platform.File, v.field(c.Name, "bundle"), c.Namespace, s.Objects)
		}
	}
	if whole {
		v.incomplete(c, all)
	}
	return nil
}

// naming is the first file at root and below that names an image; root if none does.
func naming(files fs.FS, root, image string) string {
	found := root
	_ = fs.WalkDir(files, root, func(name string, entry fs.DirEntry, err error) error { // it has been read before
		if err != nil || entry.IsDir() || !platform.IsManifest(name) {
			return err
		}
		text, err := bounded.FS(files, name, bounded.Generated)
		if err == nil && strings.Contains(string(text), image) {
			found = name
			return fs.SkipAll
		}
		return err
	})
	return found
}
