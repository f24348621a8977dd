package lint_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/lint"
)

// TestWhatArgoCDCannotApply is an object that does not fit into an annotation, and a Job that
// Kubernetes removes.
func TestWhatArgoCDCannotApply(t *testing.T) {
	r := load(t, `components:
  - {name: argocd, kind: manifests, bundle: argocd, namespace: argocd, required: true}
  - {name: web, kind: app, path: gitops/web, namespace: shop}
gitops: {engine: argocd}
`, map[string]string{"gitops/web/a.yaml": ""})
	app := func(name, options string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + "}\nspec: {source: {path: " + name + "}, syncPolicy: {syncOptions: " + options + "}}\n---\n"
	}
	big := func(annotations string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big, annotations: " + annotations + "}\ndata: {a: " + strings.Repeat("a", 256<<10) + "}\n"
	}
	job := func(name, annotations string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + ", annotations: " + annotations + "}\nspec: {ttlSecondsAfterFinished: 5, template: {spec: {restartPolicy: Never, containers: [{name: a, image: nginx}]}}}\n---\n"
	}
	tree := lint.Tree{Chart: "root", Files: map[string][]byte{}}
	for name, text := range map[string]string{
		"root/Chart.yaml":          "{apiVersion: v2, name: root, version: 1.0.0}",
		"root/templates/apps.yaml": app("client", "[]") + app("server", "[ServerSideApply=true]") + app("own", "[]") + app("jobs", "[]"),
		"client/Chart.yaml":        "{apiVersion: v2, name: client, version: 1.0.0}",
		"client/templates/a.yaml":  big("{}"),
		"server/a.yaml":            big("{}"),
		"own/a.yaml":               big("{argocd.argoproj.io/sync-options: 'Prune=false, ServerSideApply=true'}"),
		"jobs/a.yaml":              job("again", "{}") + job("hook", "{argocd.argoproj.io/hook: Sync}"),
	} {
		tree.Files[name] = []byte(text)
	}
	doubts, unread := told(t, r, contract.RenderInput{Apps: &contract.TreeValues{}}, func(*platform.Release, string, contract.TreeValues) (lint.Tree, error) { return tree, nil })
	require.Len(t, unread, 1)
	require.Contains(t, unread[0], "client (gitops/client/templates/a.yaml): ConfigMap big: got 26")
	require.Contains(t, unread[0], "want at most 262144; or add ServerSideApply=true")
	require.Len(t, doubts, 1)
	require.Contains(t, doubts[0], "jobs (gitops/jobs/a.yaml): Job again: once Kubernetes has removed the finished Job")
}
