package platform_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/platform"
	releases "github.com/slipway-sh/slipway/examples/platform"
)

// digests by short name; no two are the same.
func images(names ...string) map[string]any {
	refs := map[string]any{}
	for _, name := range names {
		refs[name] = "slipway.local/" + name + "@sha256:" + fmt.Sprintf("%064x", []byte(name))
	}
	return refs
}

// everyImage returns the images of a bundle.
func everyImage() map[string]any {
	return images("argocd", "busybox", "coredns", "gitea", "guestbook", "local-path-provisioner", "pause", "postgresql", "redis")
}

// open reads the newest release.
func open(t *testing.T) (fs.FS, *platform.Release) {
	t.Helper()
	all := releases.Versions()
	return openVersion(t, all[len(all)-1])
}

func openVersion(t *testing.T, version string) (fs.FS, *platform.Release) {
	t.Helper()
	dir, err := releases.Release(version)
	require.NoError(t, err)
	release, err := platform.Load(dir)
	require.NoError(t, err)
	return dir, release
}

// load reads the chart in a folder of a release.
func load(t *testing.T, release fs.FS, folder string) *chart.Chart {
	t.Helper()
	dir, err := fs.Sub(release, folder)
	require.NoError(t, err)
	var files []*loader.BufferedFile
	require.NoError(t, fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, name)
		files = append(files, &loader.BufferedFile{Name: name, Data: data})
		return err
	}))
	c, err := loader.LoadFiles(files)
	require.NoError(t, err)
	return c
}

// manifest renders a chart without a cluster, as Argo CD does.
func manifest(c *chart.Chart, name, namespace string, values map[string]any) (string, error) {
	install := action.NewInstall(&action.Configuration{})
	install.ClientOnly, install.DryRun, install.Replace = true, true, true
	install.ReleaseName, install.Namespace = name, namespace
	rendered, err := install.Run(c, values)
	if err != nil {
		return "", err
	}
	return rendered.Manifest, nil
}

// object is one document of a manifest.
type object struct {
	unstructured.Unstructured
	source []byte
}

var comment = regexp.MustCompile(`(?m)^# Source: .*\n`)

// objects takes a manifest apart.
func objects(t *testing.T, text string) []object {
	t.Helper()
	var out []object
	for doc := range strings.SplitSeq("\n"+text, "\n---\n") {
		if strings.TrimSpace(comment.ReplaceAllString(doc, "")) == "" {
			continue
		}
		o := object{source: []byte(doc)}
		require.NoError(t, yaml.UnmarshalStrict(o.source, &o.Object), doc)
		require.NotEmpty(t, o.GetKind(), doc)
		require.NotEmpty(t, o.GetName(), doc)
		out = append(out, o)
	}
	return out
}

// part is a rendered component.
type part struct {
	component platform.Component
	manifest  string
	objects   []object
}

// rootValues returns the values that Slipway passes to the root app.
func rootValues(scale string, enabled map[string]bool) map[string]any {
	components := map[string]any{}
	for name, on := range enabled {
		components[name] = map[string]any{"enabled": on}
	}
	return map[string]any{
		"deployment": "demo", "domain": "slipway.test", "scale": scale, "platform": "1.0.0",
		"images": everyImage(), "components": components,
		"repository": map[string]any{"revision": "0123456789abcdef0123456789abcdef01234567"},
	}
}

// known is what names in the release's texts stand for.
func known(scale, storageClass string) map[string]any {
	out := map[string]any{platform.FillDomain: "slipway.test", platform.FillScale: scale, platform.FillStorageClass: storageClass}
	for name, ref := range everyImage() {
		out["images."+name] = ref
	}
	return out
}

// giteaValues returns the values that Slipway passes to the chart of the git server: those
// of the release.
func giteaValues(t *testing.T, scale, storageClass string) map[string]any {
	t.Helper()
	_, release := open(t)
	c, _ := release.Component(release.GitServer().Component)
	values, err := platform.FillValues(c.Values, known(scale, storageClass))
	require.NoError(t, err)
	return values
}

// renderAll renders the git server, the root app and, with exactly the values
// that the root app hands on, each app.
func renderAll(t *testing.T, dir fs.FS, scale string, enabled map[string]bool) map[string]part {
	t.Helper()
	release, err := platform.Load(dir)
	require.NoError(t, err)
	parts := map[string]part{}
	add := func(c platform.Component, name, helm, namespace, folder string, values map[string]any) {
		text, err := manifest(load(t, dir, folder), helm, namespace, values)
		require.NoError(t, err, folder)
		parts[name] = part{component: c, manifest: text, objects: objects(t, text)}
	}
	byName := map[string]platform.Component{}
	for _, c := range release.Components {
		byName[c.Name] = c
	}
	add(byName["gitea"], "gitea", "gitea", "gitea", byName["gitea"].Path, giteaValues(t, scale, ""))
	add(platform.Component{}, "root-app", "root-app", "argocd", path.Join(release.GitOps.Tree, "root-app"), rootValues(scale, enabled))
	for _, app := range parts["root-app"].objects {
		values, _, err := unstructured.NestedMap(app.Object, "spec", "source", "helm", "valuesObject")
		require.NoError(t, err)
		folder, _, err := unstructured.NestedString(app.Object, "spec", "source", "path")
		require.NoError(t, err)
		namespace, _, err := unstructured.NestedString(app.Object, "spec", "destination", "namespace")
		require.NoError(t, err)
		helm, _, err := unstructured.NestedString(app.Object, "spec", "source", "helm", "releaseName")
		require.NoError(t, err)
		add(byName[app.GetName()], app.GetName(), helm, namespace, path.Join(release.GitOps.Tree, folder), values)
	}
	return parts
}

// broken returns the release with broken-image laid over it.
func broken(t *testing.T) fs.FS {
	t.Helper()
	dir, _ := open(t)
	target := t.TempDir()
	require.NoError(t, os.CopyFS(target, dir))
	over := os.DirFS("broken-image")
	require.NoError(t, fs.WalkDir(over, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(over, name)
		require.NoError(t, err)
		_, err = fs.Stat(dir, name)
		require.NoError(t, err, "it replaces a file of the release")
		return os.WriteFile(path.Join(target, name), data, 0o644)
	}))
	return os.DirFS(target)
}
