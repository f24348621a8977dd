package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"testing/fstest"

	"helm.sh/helm/v3/pkg/strvals"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

type application struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Source      *source  `json:"source"`
		Sources     []source `json:"sources"`
		Destination struct {
			Namespace string `json:"namespace"`
		} `json:"destination"`
		SyncPolicy struct {
			SyncOptions []string `json:"syncOptions"`
		} `json:"syncPolicy"`
	} `json:"spec"`
}

// strict reports whether unknown fields are rejected, as they are by a server-side apply.
func (a application) strict() bool {
	return slices.Contains(a.Spec.SyncPolicy.SyncOptions, "ServerSideApply=true")
}

type source struct {
	RepoURL   string         `json:"repoURL"`
	Path      string         `json:"path"`
	Chart     string         `json:"chart"`
	Plugin    map[string]any `json:"plugin"`
	Directory map[string]any `json:"directory"`
	Helm      struct {
		ReleaseName  string         `json:"releaseName"`
		ValueFiles   []string       `json:"valueFiles"`
		Values       string         `json:"values"`
		ValuesObject map[string]any `json:"valuesObject"`
		Parameters   []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"parameters"`
	} `json:"helm"`
}

// apps finds the images of what Argo CD brings about from the tree.
func (v *linter) apps(ctx context.Context, build BuildTree) error {
	expected, err := v.release.Apps(v.Apps.Disabled)
	if err != nil {
		return err
	}
	for _, c := range expected {
		v.declared(c)
	}
	if v.Elsewhere {
		v.skip(theApps, errors.New("their tree is in a repository of the user's"))
		return nil
	}
	tree, err := build(v.release, v.Deployment, *v.Apps)
	if err != nil {
		v.wrong(theApps, v.release.GitOps.Tree, 0, err)
		return nil
	}
	files := fstest.MapFS{}
	for name, text := range tree.Files {
		files[name] = &fstest.MapFile{Data: text}
	}
	return v.tree(ctx, files, tree)
}

// completeApps puts something in the place of images of apps that no short name is known for.
func (v *linter) completeApps() {
	if v.Apps == nil {
		return
	}
	in := *v.Apps
	in.Images = map[string]string{}
	maps.Copy(in.Images, v.Apps.Images)
	for _, c := range v.release.Components {
		if c.Kind == platform.App {
			v.fillImages(in.Images, c)
		}
	}
	v.Apps = &in
}

// maxApps is how many Applications are followed: one may bring itself, under another name each time.
const maxApps = 1000

// tree follows the Applications that the root's chart makes, and those that these make.
func (v *linter) tree(ctx context.Context, files fs.FS, tree Tree) error {
	values := map[string]any{}
	if err := yaml.Unmarshal(tree.Files[path.Join(tree.Chart, tree.Values)], &values); err != nil {
		v.skip(theApps, err)
		return nil
	}
	engine := v.release.Engine().Namespace
	root := chart{component: theApps, files: files, dir: tree.Chart, path: v.inRelease(tree.Chart), release: "root", namespace: engine, values: values, kept: true, app: true}
	var waiting []*unstructured.Unstructured
	var parts []rendered
	if err := v.look(ctx, theApps, v.release.GitOps.Tree, func() (err error) {
		parts, err = v.chart(ctx, root)
		return err
	}); err != nil {
		return err
	}
	for _, p := range parts {
		waiting = append(waiting, p.objs...)
	}
	seen := map[string]bool{}
	for len(waiting) > 0 {
		o := waiting[0]
		waiting = waiting[1:]
		if o.GetKind() != "Application" || seen[o.GetName()] {
			continue
		}
		if len(seen) == maxApps {
			v.wrong(theApps, v.release.GitOps.Tree, 0, fmt.Errorf("more than %d Applications are in it, or come of them", maxApps))
			return nil
		}
		seen[o.GetName()] = true
		var more []*unstructured.Unstructured
		var why error
		if err := v.look(ctx, o.GetName(), v.release.GitOps.Tree, func() error {
			more, why = v.application(ctx, files, o)
			return ended(ctx, o.GetName(), v.release.GitOps.Tree, why)
		}); err != nil {
			return err
		}
		if why != nil {
			v.skip(o.GetName(), why)
		}
		waiting = append(waiting, more...)
	}
	return nil
}

func (v *linter) inRelease(name string) string { return path.Join(v.release.GitOps.Tree, name) }

// application notes the images of an Application and returns its objects.
func (v *linter) application(ctx context.Context, files fs.FS, o *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var app application
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &app); err != nil {
		return nil, err
	}
	sources := app.Spec.Sources
	if app.Spec.Source != nil {
		sources = append(sources, *app.Spec.Source)
	}
	var out []*unstructured.Unstructured
	for _, s := range sources {
		if s.Path != "" && !fs.ValidPath(path.Clean(s.Path)) {
			return out, fmt.Errorf("its path %s leads out of the tree", s.Path)
		}
		info, err := fs.Stat(files, path.Clean(s.Path))
		if s.Chart != "" || s.Path == "" || err != nil || !info.IsDir() {
			return out, fmt.Errorf("it is from %s, which is not the platform's tree", s.RepoURL)
		}
		objs, err := v.source(ctx, files, app, s)
		if err != nil {
			return out, err
		}
		out = append(out, objs...)
	}
	return out, nil
}

// source renders a source of an Application that is in the tree.
func (v *linter) source(ctx context.Context, files fs.FS, app application, s source) ([]*unstructured.Unstructured, error) {
	name, at := app.Metadata.Name, path.Clean(s.Path)
	if s.Plugin != nil {
		return nil, errors.New("a plugin of Argo CD's renders it")
	}
	if _, err := fs.Stat(files, path.Join(at, "Chart.yaml")); err != nil {
		sources, err := render.Sources(ctx, files, nil, platform.Component{Path: at})
		// Directory says which files Argo CD reads; here it is all of them.
		if err != nil && s.Directory == nil && v.problems(name, problemsOf(files, at), v.inRelease) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		var out []*unstructured.Unstructured
		for _, from := range sources {
			for _, image := range render.Images(from.Objects) {
				v.note(contract.ImageUse{Component: name, File: v.inRelease(naming(files, at, image)), Kept: true}, image)
			}
			v.file(name, v.inRelease(from.Name), app.Spec.Destination.Namespace, nil, from.Objects)
			for _, m := range mistakesOf(files, from.Name, from.Objects) {
				v.mistake(name, v.inRelease(cmp.Or(m.File, render.Kustomization(files, from.Name), from.Name)), m, app.strict() || !m.Unknown)
			}
			out = append(out, from.Objects...)
		}
		return out, nil
	}
	var bad []contract.Unread
	for _, file := range s.valueFiles() {
		if _, err := fs.Stat(files, file); err == nil {
			bad = append(bad, noValues(files, file)...)
		}
	}
	if v.problems(name, bad, v.inRelease) {
		return nil, nil
	}
	values, err := s.values(files)
	if err != nil {
		return nil, err
	}
	release := s.Helm.ReleaseName
	if release == "" {
		release = name
	}
	var out []*unstructured.Unstructured
	parts, err := v.chart(ctx, chart{component: name, files: files, dir: at, path: v.inRelease(s.Path), release: release, namespace: app.Spec.Destination.Namespace, values: values, kept: true, app: true, strict: app.strict()})
	for _, p := range parts {
		out = append(out, p.objs...)
	}
	return out, err
}

func (s source) valueFiles() []string {
	var out []string
	for _, name := range s.Helm.ValueFiles {
		file := path.Join(s.Path, name)
		if path.IsAbs(name) { // from the top of the repository
			file = path.Clean(name)[1:]
		}
		out = append(out, file)
	}
	return out
}

// values are what Argo CD gives the chart of a source: the later of these wins.
func (s source) values(files fs.FS) (map[string]any, error) {
	out := map[string]any{}
	add := func(text []byte) error {
		more, err := render.ParseValues(text)
		out = render.Over(out, more)
		return err
	}
	for n, file := range s.valueFiles() {
		text, err := bounded.FS(files, file, bounded.Generated) // which leads nowhere else
		if err == nil {
			err = add(text)
		}
		if err != nil {
			return nil, fmt.Errorf("read the values %s: %w", s.Helm.ValueFiles[n], err)
		}
	}
	if err := add([]byte(s.Helm.Values)); err != nil {
		return nil, fmt.Errorf("read the Application's values: %w", err)
	}
	out = render.Over(out, s.Helm.ValuesObject)
	for _, p := range s.Helm.Parameters {
		if err := strvals.ParseInto(p.Name+"="+p.Value, out); err != nil {
			return nil, fmt.Errorf("read the parameter %s: %w", p.Name, err)
		}
	}
	return out, nil
}
