// Package survey finds what a platform release brings into a cluster, and the images that
// it runs, without a cluster: it renders charts and manifests as the steps do.
package survey

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// absent stands for an image that is not known by a short name, so that the rest can be
// rendered; charts may insist on a digest.
const absent = "slipway.local/%s:not-known@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// Tree is the GitOps tree as it would be pushed.
type Tree struct {
	Files  map[string][]byte // by path
	Chart  string            // directory of the chart that makes the Applications
	Values string            // file in it with the chart's values
}

// BuildTree makes the GitOps tree of a release.
type BuildTree func(r *platform.Release, deployment string, in contract.TreeValues) (Tree, error)

// surveyor collects what components run and what they bring about.
type surveyor struct {
	contract.Survey
	release *platform.Release
	uses    []contract.ImageUse
	unread  []contract.Unread
	shown   *[]contract.Rendered // nil: only images are asked for
}

// Images are the images that the components of a release run, sorted, each once for a
// file, and the components whose images cannot be found. An error is one of this machine.
func Images(r *platform.Release, s contract.Survey, build BuildTree) ([]contract.ImageUse, []contract.Unread, error) {
	v := &surveyor{Survey: s, release: r}
	v.completeApps()
	if err := v.all(build); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(v.uses, func(a, b contract.ImageUse) int {
		return cmp.Or(strings.Compare(a.Component+"\n"+a.File+"\n"+a.Image, b.Component+"\n"+b.File+"\n"+b.Image), truth(a.Kept)-truth(b.Kept))
	})
	return slices.Compact(v.uses), v.unread, nil
}

// all looks at every component.
func (v *surveyor) all(build BuildTree) error {
	for _, in := range v.Components {
		c, ok := v.release.Component(in.Component)
		if !ok {
			return fmt.Errorf("platform %s has no component %s", v.release.Name, in.Component)
		}
		v.declared(c)
		if err := v.component(c, in); err != nil {
			return err
		}
	}
	if v.Apps == nil {
		return nil
	}
	return v.apps(build)
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// declared notes the images that the component itself names.
func (v *surveyor) declared(c platform.Component) {
	v.use(c.Name, platform.File, c.ImageNames()...)
	v.keep(c.Name, platform.File, c.ImageReferences()...)
}

// use notes images of objects that Slipway applies.
func (v *surveyor) use(component, file string, images ...string) {
	v.note(contract.ImageUse{Component: component, File: file}, images)
}

// keep notes images of objects that somebody else applies.
func (v *surveyor) keep(component, file string, images ...string) {
	v.note(contract.ImageUse{Component: component, File: file, Kept: true}, images)
}

func (v *surveyor) note(use contract.ImageUse, images []string) {
	for _, image := range images {
		if !isAbsent(image) {
			use.Image = image
			v.uses = append(v.uses, use)
		}
	}
}

func isAbsent(image string) bool {
	before, after, _ := strings.Cut(absent, "%s")
	return strings.HasPrefix(image, before) && strings.HasSuffix(image, after)
}

// skip notes that a component's images and objects cannot be found.
func (v *surveyor) skip(component string, err error) {
	v.unread = append(v.unread, contract.Unread{Component: component, Err: err})
	v.show(contract.Rendered{Component: component, Kind: v.kind(component), Err: err})
}

// component finds the images of a component that Slipway installs.
func (v *surveyor) component(c platform.Component, in contract.ComponentInput) error {
	in = complete(c, in)
	switch c.Kind {
	case platform.Chart, platform.Adopted:
		values, err := render.Values(v.release.Files(), c, in)
		if err != nil {
			v.skip(c.Name, err)
			return nil
		}
		return v.withDirectory(func(dir string) error {
			files, err := fs.Sub(v.release.Files(), c.Path)
			if err == nil {
				err = os.CopyFS(dir, files)
			}
			if err != nil {
				return fmt.Errorf("copy the chart of component %s: %w", c.Name, err)
			}
			of := chart{component: c.Name, dir: dir, path: c.Path, release: c.Name, namespace: c.Namespace, values: values, in: in}
			if c.Kind == platform.Adopted { // it is Argo CD's in the end, which replaces no reference
				of.in, of.kept = contract.ComponentInput{}, true
			}
			v.chart(of)
			return nil
		})
	case platform.Manifests, platform.Job:
		v.manifests(c, in)
	case platform.AppSet:
		if v.shown != nil {
			v.manifests(c, in)
			return nil
		}
		v.skip(c.Name, errors.New("the cluster decides which Applications it brings"))
	}
	return nil
}

// complete puts something in the place of images that no short name is known for.
func complete(c platform.Component, in contract.ComponentInput) contract.ComponentInput {
	fill, images := map[string]any{}, map[string]string{}
	for k, v := range in.Fill {
		fill[k] = v
	}
	for _, hole := range c.Holes() {
		if name, ok := platform.ImageHole(hole); ok && fill[hole] == nil {
			fill[hole] = fmt.Sprintf(absent, name)
		}
	}
	for _, name := range c.ImageNames() {
		images[name] = in.Images[name]
		if images[name] == "" {
			images[name] = fmt.Sprintf(absent, name)
		}
	}
	for ref, own := range in.Rewrite {
		images[ref] = own
	}
	in.Fill, in.Images = fill, images
	return in
}

// manifests finds the images of a component's files. What the bundle's manifests run, the
// bundle and the lock have.
func (v *surveyor) manifests(c platform.Component, in contract.ComponentInput) {
	if c.Bundle != "" && v.Manifests == nil {
		if v.shown != nil {
			v.skip(c.Name, errors.New("they are those of a bundle, and none is given: --bundle DIR"))
			return
		}
		if c.Bundle = ""; c.Path == "" {
			return
		}
	}
	sources, err := render.Sources(v.release.Files(), v.Manifests, c)
	if err != nil {
		v.skip(c.Name, err)
		return
	}
	for _, s := range sources {
		render.SetImages(s.Objects, in.Images)
		v.objects(c.Name, v.release.Files(), cmp.Or(c.Path, "manifests/"+c.Bundle), s.Objects)
		v.file(c.Name, s.Name, c.Namespace, in.Hosts, s.Objects)
	}
}

// objects notes the images of objs, each with the file below root that names it.
func (v *surveyor) objects(component string, files fs.FS, root string, objs []*unstructured.Unstructured) {
	for _, image := range render.Images(objs) {
		v.use(component, naming(files, root, image), image)
	}
}

// naming is the first file at root and below that has an image's reference in it; root if
// none has, as when a kustomization makes it.
func naming(files fs.FS, root, image string) string {
	found := root
	_ = fs.WalkDir(files, root, func(name string, entry fs.DirEntry, err error) error { // it has been read before
		if err != nil || entry.IsDir() || !platform.IsManifest(name) {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err == nil && strings.Contains(string(text), image) {
			found = name
			return fs.SkipAll
		}
		return err
	})
	return found
}

// withDirectory calls do with a directory that is removed afterwards.
func (v *surveyor) withDirectory(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "slipway-survey-")
	if err != nil {
		return fmt.Errorf("make a directory for charts: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return do(filepath.Join(dir, "files"))
}
