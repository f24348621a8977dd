package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/lint"
)

// TestWhatIsWrongWithApps is what is wrong with files that Argo CD would read as Slipway
// does; their values a run finds out.
func TestWhatIsWrongWithApps(t *testing.T) {
	r := load(t, `components:
  - {name: argocd, kind: manifests, bundle: argocd, namespace: argocd, required: true}
  - {name: web, kind: app, path: gitops/web, namespace: shop}
gitops: {engine: argocd}
`, map[string]string{"gitops/web/a.yaml": ""})
	app := func(name, source string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + "}\nspec: {source: " + source + "}\n---\n"
	}
	tree := lint.Tree{Chart: "root", Values: "slipway.yaml", Files: map[string][]byte{}}
	for name, text := range map[string]string{
		"root/Chart.yaml":   "{apiVersion: v2, name: root, version: 1.0.0}",
		"root/slipway.yaml": "{}",
		"root/templates/apps.yaml": app("plain", "{path: plain}") + app("some", "{path: plain, directory: {exclude: b.yaml}}") + app("plugin", "{path: plain, plugin: {name: a}}") +
			app("kustomized", "{path: kustomized}") + app("jsonnet", "{path: jsonnet}") +
			app("unread", "{path: unread}") + app("syntax", "{path: syntax}") + app("values", "{path: values}") +
			app("file", "{path: syntax, helm: {valueFiles: [../bad.yaml]}}") + app("missing", "{path: syntax, helm: {valueFiles: [none.yaml]}}"),
		"plain/a.yaml":                  deployment("a", "nginx"),
		"plain/b.yaml":                  "a: [",
		"kustomized/kustomization.yaml": "resources: [https://example.com/a.yaml]",
		"jsonnet/a.jsonnet":             "{}",
		"unread/Chart.yaml":             "{",
		"syntax/Chart.yaml":             "{apiVersion: v2, name: syntax, version: 1.0.0}",
		"syntax/templates/a.yaml":       "\n{{ nothing }}",
		"values/Chart.yaml":             "{apiVersion: v2, name: values, version: 1.0.0}",
		"values/templates/a.yaml":       "{{ required \"only a run knows\" .Values.a }}",
		"bad.yaml":                      "a: b\n c: d",
	} {
		tree.Files[name] = []byte(text)
	}
	_, unread := found(t, r, contract.RenderInput{Apps: &contract.TreeValues{}}, func(*platform.Release, string, contract.TreeValues) (lint.Tree, error) { return tree, nil })
	require.Len(t, unread, 10)
	slices.Sort(unread)
	for n, says := range []string{
		"file (gitops/bad.yaml, line 2): ", "jsonnet: ", "kustomized: ", "missing: ", "plain (gitops/plain/b.yaml, line 1): ",
		"plugin: a plugin of Argo CD's renders it", "some: ", "syntax (gitops/syntax/templates/a.yaml, line 2): ", "unread (gitops/unread/Chart.yaml", "values: ",
	} {
		require.True(t, strings.HasPrefix(unread[n], says), "%s, want %s", unread[n], says)
	}
}
