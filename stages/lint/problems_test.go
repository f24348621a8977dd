package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/lint"
)

// TestWhatAChartDependsOn comes with it: all of it, as Helm demands, also what is off.
func TestWhatAChartDependsOn(t *testing.T) {
	const missing = "found in Chart.yaml, but missing in charts/ directory: "
	const here = "{apiVersion: v2, name: redis, version: 1.0.0}"
	for what, c := range map[string]struct{ chart, requirements, sub, says string }{
		"there":               {chart: "dependencies: [{name: redis, version: 1.0.0}]", sub: here},
		"there, by its alias": {chart: "dependencies: [{name: redis, alias: cache, version: 1.0.0}]", sub: here},
		"missing":             {chart: "dependencies: [{name: redis, version: 1.0.0}, {name: kafka, version: 1.0.0}]", sub: here, says: "web (web/Chart.yaml): " + missing + "kafka; it comes with the release: helm dependency build web"},
		"off and missing":     {chart: "dependencies: [{name: redis, version: 1.0.0, condition: on}]", says: "web (web/Chart.yaml): " + missing + "redis; "},
		"of an older format":  {requirements: "dependencies: [{name: redis, version: 1.0.0}]", says: "web (web/requirements.yaml): " + missing + "redis; "},
	} {
		t.Run(what, func(t *testing.T) {
			files := map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n" + c.chart, "web/values.yaml": "on: false", "web/templates/a.yaml": deployment("a", "nginx")}
			if c.requirements != "" {
				files["web/Chart.yaml"], files["web/requirements.yaml"] = "apiVersion: v1\nname: web\nversion: 1.0.0\n", c.requirements
			}
			if c.sub != "" {
				files["web/charts/redis/Chart.yaml"], files["web/charts/redis/templates/a.yaml"] = c.sub, deployment("b", "redis")
			}
			r := load(t, "components: [{name: web, kind: chart, path: web, namespace: shop}]\n", files)
			uses, unread := found(t, r, contract.RenderInput{Components: []contract.ComponentInput{{Component: "web"}}}, nil)
			if c.says == "" {
				require.Empty(t, unread)
				require.Len(t, uses, 2)
				return
			}
			require.Len(t, unread, 1)
			require.Contains(t, unread[0], c.says)
			require.Empty(t, uses)
		})
	}
}

// TestWhatTheChartOfAnAppDependsOn may be missing: Argo CD fetches it.
func TestWhatTheChartOfAnAppDependsOn(t *testing.T) {
	r := load(t, "components:\n  - {name: argocd, kind: manifests, bundle: argocd, namespace: argocd, required: true}\n"+
		"  - {name: web, kind: app, path: gitops/apps/web, namespace: shop}\ngitops: {engine: argocd}\n", map[string]string{"gitops/apps/web/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}"})
	tree := lint.Tree{Chart: "root", Files: map[string][]byte{
		"root/Chart.yaml":          []byte("{apiVersion: v2, name: root, version: 1.0.0}"),
		"root/templates/apps.yaml": []byte("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {source: {path: apps/web}}\n"),
		"apps/web/Chart.yaml":      []byte("{apiVersion: v2, name: web, version: 1.0.0, dependencies: [{name: redis, version: 1.0.0}]}"),
	}}
	build := func(*platform.Release, string, contract.TreeValues) (lint.Tree, error) { return tree, nil }
	_, unread := found(t, r, contract.RenderInput{Apps: &contract.TreeValues{}}, build)
	require.Equal(t, []string{"web: what its chart depends on is fetched by Argo CD: found in Chart.yaml, but missing in charts/ directory: redis"}, unread)
}

// TestDefinitionsThatCannotBeRead are named with the others of the chart, and of those that
// it depends on.
func TestDefinitionsThatCannotBeRead(t *testing.T) {
	r := load(t, "components: [{name: web, kind: chart, path: charts/web, namespace: shop}]\n", map[string]string{
		"charts/web/Chart.yaml": "{apiVersion: v2, name: public-web, version: 1.0.0}", "charts/web/crds/a.yaml": "kind: A\n---\nmetadata: {name: a",
		"charts/web/templates/a.yaml": "{{ fail \"never\" }}", "charts/web/charts/sub/Chart.yaml": "{apiVersion: v2, name: sub, version: 1.0.0}", "charts/web/charts/sub/crds/b.yaml": "\n\n- b\n",
	})
	_, unread := found(t, r, contract.RenderInput{Components: []contract.ComponentInput{{Component: "web"}}}, nil)
	require.Len(t, unread, 4)
	require.Equal(t, "web (charts/web/crds/a.yaml, line 1): no object: apiVersion, kind or metadata.name is missing", unread[0])
	require.Contains(t, unread[1], "web (charts/web/crds/a.yaml, line 3): ")
	require.Contains(t, unread[2], "web (charts/web/charts/sub/crds/b.yaml, line 3): ")
	require.Contains(t, unread[3], "never")
}

// TestObjectsInNamespacesThatNothingMakes are named where that is certain.
func TestObjectsInNamespacesThatNothingMakes(t *testing.T) {
	in := func(kind, namespace string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: a, namespace: " + namespace + "}\n---\n"
	}
	const elsewhere = "is in the namespace elsewhere, which neither the release nor an object of a component makes; list it under namespaces in platform.yaml, or have the object in another one"
	for what, c := range map[string]struct {
		manifest, more string
		guessed        bool
		says           []string
	}{
		"of the release, and of every cluster": {manifest: in("Secret", "shop") + in("Secret", "default") + in("Secret", "kube-system") + in("Secret", "kube-public")},
		"of nobody":                            {manifest: in("Secret", "elsewhere") + in("ConfigMap", "elsewhere") + in("ConfigMap", "far"), says: []string{"web (web.yaml): the Secret a " + elsewhere, strings.ReplaceAll("web (web.yaml): the ConfigMap a "+elsewhere, "elsewhere", "far")}},
		"made by another file":                 {manifest: in("Secret", "elsewhere"), more: "apiVersion: v1\nkind: Namespace\nmetadata: {name: elsewhere}\n"},
		"of a kind without namespaces":         {manifest: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a, namespace: elsewhere}\n"},
		"beside a definition":                  {manifest: in("Secret", "elsewhere"), more: "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tenants.example.com}\n", says: []string{"web (web.yaml): the Secret a " + elsewhere}},
		"a controller may make it":             {manifest: in("Secret", "elsewhere"), more: "apiVersion: example.com/v1\nkind: Tenant\nmetadata: {name: elsewhere}\n"},
		"in somebody's cluster":                {manifest: in("Secret", "elsewhere"), guessed: true},
	} {
		t.Run(what, func(t *testing.T) {
			files := map[string]string{"web.yaml": c.manifest, "more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n---\n" + c.more}
			r := load(t, "components:\n  - {name: web, kind: manifests, path: web.yaml, namespace: shop}\n  - {name: more, kind: manifests, path: more.yaml, namespace: shop}\n", files)
			_, unread := found(t, r, contract.RenderInput{Components: []contract.ComponentInput{{Component: "web"}, {Component: "more"}}, Guessed: c.guessed}, nil)
			require.Equal(t, c.says, unread)
		})
	}
}

// TestAnAppStaysInTheTree: what its paths lead to elsewhere is not read.
func TestAnAppStaysInTheTree(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.yaml")
	require.NoError(t, os.WriteFile(secret, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: hunter2}\nspec: {containers: [{name: a, image: hunter2}]}\n"), 0o600))
	out := strings.Repeat("../", 20) + strings.TrimPrefix(filepath.ToSlash(dir), "/")
	r := load(t, "components:\n  - {name: argocd, kind: manifests, bundle: argocd, namespace: argocd, required: true}\n"+
		"  - {name: web, kind: app, path: gitops/apps/web, namespace: shop}\ngitops: {engine: argocd}\n", map[string]string{"gitops/apps/web/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}"})
	for source, says := range map[string]string{
		"{path: " + out + "}": "web: its path " + out + " leads out of the tree",
		"{path: apps/web, helm: {valueFiles: [" + out + "/secret.yaml]}}": "web: read the values " + out + "/secret.yaml: ",
	} {
		tree := lint.Tree{Chart: "root", Files: map[string][]byte{
			"root/Chart.yaml":           []byte("{apiVersion: v2, name: root, version: 1.0.0}"),
			"root/templates/apps.yaml":  []byte("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {source: " + source + "}\n"),
			"apps/web/Chart.yaml":       []byte("{apiVersion: v2, name: web, version: 1.0.0}"),
			"apps/web/templates/a.yaml": []byte(deployment("a", "{{ .Values.metadata.name }}")),
		}}
		build := func(*platform.Release, string, contract.TreeValues) (lint.Tree, error) { return tree, nil }
		uses, unread := found(t, r, contract.RenderInput{Apps: &contract.TreeValues{}}, build)
		require.NotContains(t, strings.Join(append(uses, unread...), "\n"), "hunter2")
		require.Len(t, unread, 1)
		require.Contains(t, unread[0], says)
	}
}

// TestLabelsThatNoClusterTakes are found wherever they are from, and can be mended by a patch.
func TestLabelsThatNoClusterTakes(t *testing.T) {
	label := func(value string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: '" + value + "'}}}\n"
	}
	r := load(t, `components:
  - {name: own, kind: manifests, path: own, namespace: shop-own}
  - {name: theirs, kind: manifests, bundle: theirs, namespace: shop-theirs}
  - {name: mended, kind: manifests, bundle: theirs, path: mended, namespace: shop-mended}
`, map[string]string{
		"own/a.yaml":    label("two words"),
		"own/b.yaml":    strings.Replace(label("web"), "name: a", "name: b", 1),
		"mended/a.yaml": label("web"),
	})
	s := contract.RenderInput{Manifests: fstest.MapFS{"theirs/a.yaml": {Data: []byte(label("{{ .Release.Name }}"))}}}
	for _, c := range r.Components {
		s.Components = append(s.Components, contract.ComponentInput{Component: c.Name})
	}
	_, unread := found(t, r, s, nil)
	require.Len(t, unread, 2)
	require.Contains(t, unread[0], `own (own/a.yaml, line 1): ConfigMap a: metadata.labels.app: got "two words", want a label's value: `)
	require.Contains(t, unread[1], `theirs (platform.yaml, line 7): ConfigMap a: metadata.labels.app: got "{{ .Release.Name }}"`)
}
