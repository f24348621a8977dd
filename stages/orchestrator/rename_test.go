package orchestrator

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/removal"
)

const (
	atOld  = "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/site"
	atPage = "/api/v1/namespaces/shop/configmaps/page"
)

// TestAppsWithAnotherName: the old Application goes without what it brought, while Argo CD
// syncs nothing of the root, and what was synced meanwhile is ended first.
func TestAppsWithAnotherName(t *testing.T) {
	api, c := withArgo(t)
	env := published(t, api.URL, "")
	text, err := os.ReadFile(env.PlatformDir + "/" + platform.File)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(env.PlatformDir+"/"+platform.File, []byte(strings.Replace(string(text), "name: web,", "name: web, renamedFrom: site,", 1)), 0o600))
	r, err := platform.Load(os.DirFS(env.PlatformDir))
	require.NoError(t, err)
	on := func(string) bool { return true }
	rename := func() error { return renameApps(t.Context(), env, c, r, on) }
	require.NoError(t, rename(), "a first install")

	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/cd/appprojects/platform", "{metadata: {name: platform, namespace: cd}, spec: {destinations: [{namespace: shop}]}}")
	old := func(by string) {
		api.Set(t, atOld, `{metadata: {name: site, namespace: cd, finalizers: [resources-finalizer.argocd.argoproj.io], annotations: {argocd.argoproj.io/tracking-id: "`+by+`:argoproj.io/Application:cd/site"}},
  spec: {project: platform}, status: {resources: [{version: v1, kind: ConfigMap, namespace: shop, name: page}]}}`)
	}
	old("mine")
	require.NoError(t, rename())
	require.NotNil(t, api.Get(atOld), "it is one of the user's own")

	old(RootApp)
	api.Set(t, atPage, `metadata: {name: page, namespace: shop, annotations: {argocd.argoproj.io/tracking-id: "site:/ConfigMap:shop/page"}}`)
	api.Set(t, atRoot, "{metadata: {name: root, namespace: cd}, spec: {syncPolicy: {automated: {prune: true}}}, status: {operationState: {phase: Running, startedAt: '2026-01-01T00:00:00Z'}}}")
	require.ErrorIs(t, renameApps(dryrun.Context(t.Context()), env, c, r, on), dryrun.ErrWouldChange)
	require.NoError(t, renameApps(new(dryrun.Preview).Watch(t.Context(), "orchestrator/publish"), env, c, r, on), "a plan goes on: it has to see what Git has")
	require.NotNil(t, api.Get(atOld))
	require.NoError(t, renameApps(t.Context(), env, c, r, func(string) bool { return false }))
	require.NotNil(t, api.Get(atOld), "what is switched off goes with all that it brought")

	api.Controller = func(path string, o map[string]any) {
		if path != atRoot {
			return
		}
		if state := o["status"].(map[string]any)["operationState"].(map[string]any); state["phase"] == "Terminating" {
			require.NotContains(t, o["spec"].(map[string]any)["syncPolicy"], "automated", "nothing new begins")
			state["phase"] = "Failed"
		}
	}
	require.NoError(t, rename())
	require.Nil(t, api.Get(atOld))
	require.Equal(t, "web:/ConfigMap:shop/page", api.Get(atPage)["metadata"].(map[string]any)["annotations"].(map[string]any)["argocd.argoproj.io/tracking-id"])
	require.NotContains(t, strings.Join(api.Writes(), " "), "DELETE "+atPage)
	require.NoError(t, renameApps(dryrun.Context(t.Context()), env, c, r, on), "once is enough")

	root, err := rootApplication("demo", r, contract.AppsInput{Tree: contract.Tree{Namespace: "cd"}})
	require.NoError(t, err)
	require.NoError(t, freshIfHeld(t.Context(), c, root))
	require.Equal(t, map[string]string{"argocd.argoproj.io/refresh": "normal"}, root.GetAnnotations(), "the tree that Argo CD remembers has the old name")
	root.SetAnnotations(nil)
	api.Set(t, atRoot, "{metadata: {name: root, namespace: cd}, spec: {syncPolicy: {automated: {prune: true}}}}")
	require.NoError(t, freshIfHeld(t.Context(), c, root))
	require.Empty(t, root.GetAnnotations(), "it syncs by itself")

	// The release before is brought back.
	require.NoError(t, removal.RecordOf(r).Write(t.Context(), c, "demo"))
	require.NoError(t, os.WriteFile(env.PlatformDir+"/"+platform.File, []byte(strings.Replace(string(text), "name: web,", "name: site,", 1)), 0o600))
	r, err = platform.Load(os.DirFS(env.PlatformDir))
	require.NoError(t, err)
	api.Set(t, strings.Replace(atOld, "/site", "/web", 1), `{metadata: {name: web, namespace: cd, annotations: {argocd.argoproj.io/tracking-id: "root:argoproj.io/Application:cd/web"}}, spec: {project: platform}, status: {resources: [{version: v1, kind: ConfigMap, namespace: shop, name: page}]}}`)
	require.NoError(t, rename())
	require.Nil(t, api.Get(strings.Replace(atOld, "/site", "/web", 1)))
	require.Equal(t, "site:/ConfigMap:shop/page", api.Get(atPage)["metadata"].(map[string]any)["annotations"].(map[string]any)["argocd.argoproj.io/tracking-id"])
}
