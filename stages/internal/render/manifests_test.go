package render_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// files is a directory of text files.
func files(texts map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range texts {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// configMap is one of that name, on one line.
func configMap(name string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}\n"
}

// named lists objects as "Kind/name".
func named(objs []*unstructured.Unstructured) []string {
	out := make([]string, len(objs))
	for i, o := range objs {
		out[i] = o.GetKind() + "/" + o.GetName()
	}
	return out
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := yaml.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func TestTheObjectsOfAFileAndOfADirectory(t *testing.T) {
	release := files(map[string]string{
		"web/20-late.yaml":    configMap("d"),
		"web/10-early.yml":    configMap("a") + "---\n" + configMap("b"),
		"web/05-more/c.json":  `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}`,
		"web/05-more/read.me": "not: a manifest\n",
		"web/notes.txt":       "nothing",
		"other/x.yaml":        configMap("x"),
	})
	for path, want := range map[string][]string{
		"web":                {"ConfigMap/c", "ConfigMap/a", "ConfigMap/b", "ConfigMap/d"}, // by the files' names
		"web/10-early.yml":   {"ConfigMap/a", "ConfigMap/b"},
		"web/05-more":        {"ConfigMap/c"},
		"other":              {"ConfigMap/x"},
		"web/20-late.yaml":   {"ConfigMap/d"},
		"web/05-more/c.json": {"ConfigMap/c"},
	} {
		objs, err := render.Manifests(t.Context(), release, nil, platform.Component{Path: path})
		require.NoError(t, err, path)
		require.Equal(t, want, named(objs), path)
	}
}

func TestManifestsMustBeThere(t *testing.T) {
	release := files(map[string]string{
		"empty/read.me": "nothing", "broken/a.yaml": "kind: X", "twice/a.yaml": "a: 1\na: 2\n",
	})
	bundle := files(map[string]string{"argocd/a.yaml": configMap("a")})
	for says, c := range map[string]platform.Component{
		"the platform release: open away: file does not exist":                   {Path: "away"},
		"the platform release: empty holds no YAML file":                         {Path: "empty"},
		"the platform release: decode broken/a.yaml: document 1: apiVersion":     {Path: "broken"},
		"the platform release: decode twice/a.yaml: document 1: ":                {Path: "twice"},
		"the bundle: it has no manifests gitea; build a bundle for this release": {Bundle: "gitea"},
		"the platform release: open gone: file does not exist":                   {Bundle: "argocd", Path: "gone"},
	} {
		_, err := render.Manifests(t.Context(), release, bundle, c)
		require.ErrorContains(t, err, says)
	}
	_, err := render.Manifests(t.Context(), release, bundle, platform.Component{Path: "away"})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestAKustomizationIsBuilt with what it patches and generates, also from directories
// beside it.
func TestAKustomizationIsBuilt(t *testing.T) {
	release := files(map[string]string{
		"base/kustomization.yaml": "resources: [web.yaml]\n",
		"base/web.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  template:
    spec:
      containers: [{name: web, image: web, envFrom: [{configMapRef: {name: settings}}]}]
`,
		"overlays/site/kustomization.yml": `
namespace: shop
resources: [../../base, extra]
configMapGenerator: [{name: settings, literals: [COLOUR=red], files: [notes.txt]}]
patches:
  - target: {kind: Deployment, name: web}
    patch: |-
      - {op: replace, path: /spec/replicas, value: 3}
`,
		"overlays/site/notes.txt":                 "read me\n",
		"overlays/site/extra/Kustomization":       "resources: [a.yaml]\n",
		"overlays/site/extra/a.yaml":              configMap("extra"),
		"overlays/site/extra/not-a-resource.yaml": "broken: [\n",
	})
	objs, err := render.Manifests(t.Context(), release, nil, platform.Component{Path: "overlays/site"})
	require.NoError(t, err)
	byName := map[string]*unstructured.Unstructured{}
	generated := ""
	for i, name := range named(objs) {
		byName[name] = objs[i]
		require.Equal(t, "shop", objs[i].GetNamespace(), name)
		if name != "ConfigMap/extra" && objs[i].GetKind() == "ConfigMap" {
			generated = objs[i].GetName()
		}
	}
	require.Len(t, objs, 3)
	require.Regexp(t, `^settings-[a-z0-9]{10}$`, generated, "its name says what it holds")
	require.Equal(t, map[string]any{"COLOUR": "red", "notes.txt": "read me\n"}, byName["ConfigMap/"+generated].Object["data"])
	web := byName["Deployment/web"]
	replicas, _, err := unstructured.NestedFieldNoCopy(web.Object, "spec", "replicas")
	require.NoError(t, err)
	require.EqualValues(t, 3, replicas)
	require.Contains(t, text(t, web.Object), "name: "+generated, "and who uses it follows")
	require.Equal(t, []string{"ConfigMap/" + generated}, render.Uses(web))
	require.NotPanics(t, func() { web.DeepCopy() }, "numbers are as Kubernetes' own code has them")
}

// TestAKustomizationTakesNothingFromElsewhere: what is installed is what the release holds,
// and no address is asked.
func TestAKustomizationTakesNothingFromElsewhere(t *testing.T) {
	const away = "https://example.invalid/a.yaml"
	for what, names := range map[string]struct{ text, name string }{
		"a file":                   {"resources: [web.yaml, away.yaml]", "away.yaml"},
		"outside of the release":   {"resources: [../../../etc]", "../../../etc"},
		"an address":               {"resources: [" + away + "]", away},
		"a repository":             {"resources: ['git@example.invalid:a/b.git']", "git@example.invalid:a/b.git"},
		"a repository on GitHub":   {"components: ['github.com/a/b//c?ref=v1']", "github.com/a/b//c?ref=v1"},
		"a base":                   {"bases: [" + away + "]", away},
		"a definition":             {"crds: [" + away + "]", away},
		"a patch":                  {"patches: [{path: '" + away + "'}]", away},
		"an older patch":           {"patchesStrategicMerge: ['" + away + "']", away},
		"a replacement":            {"replacements: [{path: '" + away + "'}]", away},
		"a schema":                 {"openapi: {path: '" + away + "'}", away},
		"a file of a ConfigMap":    {"configMapGenerator: [{name: x, files: ['key=" + away + "']}]", away},
		"the variables of another": {"configMapGenerator: [{name: x, envs: ['" + away + "']}]", away},
		"a file of a Secret":       {"secretGenerator: [{name: x, files: ['" + away + "']}]", away},
	} {
		release := files(map[string]string{"web/web.yaml": configMap("a"), "web/base/kustomization.yaml": names.text, "web/base/web.yaml": configMap("b"), "web/kustomization.yaml": "resources: [web.yaml, base]"})
		_, err := render.Manifests(t.Context(), release, nil, platform.Component{Path: "web"})
		require.EqualError(t, err, "the platform release: web/base/kustomization.yaml names "+names.name+", which is no file or directory of the release", what)
	}
	inline := files(map[string]string{"web/web.yaml": configMap("a"), "web/kustomization.yaml": `
resources: [web.yaml]
configMapGenerator: [{name: links, literals: ["home=https://example.org"]}]
patches: [{patch: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {home: 'https://example.org'}}"}]
patchesStrategicMerge: ["{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}"]
`})
	objs, err := render.Manifests(t.Context(), inline, nil, platform.Component{Path: "web"})
	require.NoError(t, err, "an address as a value is none that is asked")
	require.Equal(t, map[string]any{"home": "https://example.org", "k": "v"}, objs[0].Object["data"])
}

func TestAKustomizationThatCannotBeBuilt(t *testing.T) {
	for says, text := range map[string]string{
		"decode web/kustomization.yaml: ":           "resources: text",
		"decode web/kustomization.yaml: invalid ":   "resources: [web.yaml]\nnonsense: 1\n",
		"build the kustomization web: accumulating": "resources: [web.yaml, web.yaml]\n",
	} {
		release := files(map[string]string{"web/web.yaml": configMap("a"), "web/kustomization.yaml": text})
		_, err := render.Manifests(t.Context(), release, nil, platform.Component{Path: "web"})
		require.ErrorContains(t, err, says)
	}
}

const upstream = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  replicas: 1
  template:
    spec:
      initContainers: [{name: copy, image: "quay.io/x/tool:v3"}]
      containers:
        - {name: server, image: "quay.io/x/server:v3", env: [{name: A, value: a}], args: [--quiet]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: params}
data: {keep: "1", change: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: unwanted}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 1, colour: red, parts: [a, b]}
`

// TestFilesArePatchesOfTheBundlesObjectsOrAdditions: strategic merge patches where the kind
// is one of Kubernetes' own, and merge patches elsewhere.
func TestFilesArePatchesOfTheBundlesObjectsOrAdditions(t *testing.T) {
	bundle := files(map[string]string{"product/install.yaml": upstream, "others/x.yaml": configMap("x")})
	release := files(map[string]string{"patches/a.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  template:
    spec:
      initContainers: [{name: copy, $patch: delete}]
      containers:
        - {name: server, env: [{name: B, value: b}], args: [--loud]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: params}
data: {change: "2", keep: "1", add: "3"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: unwanted}
$patch: delete
---
apiVersion: v1
kind: ConfigMap
metadata: {name: not-there-either}
$patch: delete
`, "patches/b.yaml": `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 2, colour: null, parts: [c]}
---
apiVersion: v1
kind: Secret
metadata: {name: added}
`})
	c := platform.Component{Bundle: "product", Path: "patches"}
	objs, err := render.Manifests(t.Context(), release, bundle, c)
	require.NoError(t, err)
	require.Equal(t, []string{"Deployment/server", "ConfigMap/params", "Widget/w", "Secret/added"}, named(objs), "in the bundle's order")
	require.YAMLEq(t, `
replicas: 1
template:
  spec:
    initContainers: []
    containers:
      - name: server
        image: quay.io/x/server:v3
        args: [--loud]
        env: [{name: B, value: b}, {name: A, value: a}]
`, text(t, objs[0].Object["spec"]))
	require.Equal(t, map[string]any{"keep": "1", "change": "2", "add": "3"}, objs[1].Object["data"])
	require.YAMLEq(t, "{size: 2, parts: [c]}", text(t, objs[2].Object["spec"]))

	again, err := render.Manifests(t.Context(), release, bundle, c)
	require.NoError(t, err)
	require.Equal(t, objs, again)
	objs, err = render.Manifests(t.Context(), nil, bundle, platform.Component{Bundle: "product"})
	require.NoError(t, err)
	require.Len(t, objs, 4, "unchanged")
}

// TestAPatchThatDoesNotFit names the object.
func TestAPatchThatDoesNotFit(t *testing.T) {
	bundle := files(map[string]string{"product/install.yaml": upstream})
	release := files(map[string]string{"p.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: server}, spec: {template: {spec: {containers: [{name: server, $patch: merged}]}}}}"})
	_, err := render.Manifests(t.Context(), release, bundle, platform.Component{Bundle: "product", Path: "p.yaml"})
	require.ErrorContains(t, err, "merge into Deployment server: ")
}
