package lint_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/lint"
)

const someApps = `components:
  - {name: argocd, kind: manifests, bundle: argocd, namespace: argocd, required: true}
  - {name: web, kind: app, path: gitops/web, namespace: shop}
gitops: {engine: argocd}
`

// rootOf is a tree whose chart has a template.
func rootOf(template string, files map[string]string) lint.BuildTree {
	tree := lint.Tree{Chart: "root", Values: "slipway.yaml", Files: map[string][]byte{
		"root/Chart.yaml": []byte("{apiVersion: v2, name: root, version: 1.0.0}"), "root/slipway.yaml": []byte("{}"), "root/templates/a.yaml": []byte(template),
	}}
	for name, text := range files {
		tree.Files[name] = []byte(text)
	}
	return func(*platform.Release, string, contract.TreeValues) (lint.Tree, error) { return tree, nil }
}

// TestWhatIsLookedAtEnds with its context, after it is rendered, too. What is here takes much longer, and
// goes on until the tests end.
func TestWhatIsLookedAtEnds(t *testing.T) {
	slow := strings.Repeat("---\na\n", 12000)
	r := load(t, "components: [{name: web, kind: manifests, path: web, namespace: shop}]\n", map[string]string{"web/a.yaml": slow})
	apps := load(t, someApps, map[string]string{"gitops/web/a.yaml": slow})
	in := []contract.ComponentInput{{Component: "web"}}
	for name, c := range map[string]struct {
		release *platform.Release
		input   contract.RenderInput
		build   lint.BuildTree
	}{
		"component": {r, contract.RenderInput{Components: in}, nil},
		"suite":     {r, contract.RenderInput{Suites: in}, nil},
		"off":       {r, contract.RenderInput{Off: in}, nil},
		"app": {apps, contract.RenderInput{Apps: &contract.TreeValues{}},
			rootOf("{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}, spec: {source: {path: web}}}", map[string]string{"web/a.yaml": slow})},
	} {
		t.Run(name, func(t *testing.T) {
			c.input.Kubernetes = "1.35.4"
			interrupt := errors.New("interrupted")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(200*time.Millisecond, func() { cancel(interrupt) })
			begin := time.Now()
			_, err := lint.Contents(ctx, c.release, c.input, c.build, nil)
			require.ErrorIs(t, err, interrupt)
			require.Less(t, time.Since(begin), 15*time.Second)
		})
	}
}

// TestApplicationsWithoutEnd: one may bring itself under another name.
func TestApplicationsWithoutEnd(t *testing.T) {
	const app = "{{ range until 1001 }}\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a{{ . }}}\nspec: {source: {path: web, plugin: {name: a}}}\n{{ end }}"
	r := load(t, someApps, map[string]string{"gitops/web/a.yaml": ""})
	_, unread := found(t, r, contract.RenderInput{Apps: &contract.TreeValues{}}, rootOf(app, map[string]string{"web/a.yaml": ""}))
	require.Equal(t, "the apps (gitops): more than 1000 Applications are in it, or come of them", unread[len(unread)-1])
}
