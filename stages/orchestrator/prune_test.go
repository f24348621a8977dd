package orchestrator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

const byUs = "labels: {" + kube.ManagedBy + ": " + kube.FieldManager + ", " + kube.DeploymentLabel + ": demo}, managedFields: [{manager: " + kube.FieldManager + "}]"

// installing makes the release of a step's environment one with these sections.
func installing(t *testing.T, env *step.Env, sections string) {
	t.Helper()
	text := "apiVersion: slipway/v2\nname: sample\nversion: 1.0.0\ncomponents: [{name: argocd, kind: manifests, path: a.yaml, namespace: cd}]\n" + sections
	require.NoError(t, os.WriteFile(filepath.Join(env.PlatformDir, platform.File), []byte(text), 0o600))
}

// TestWhatANewerReleaseHasNoMoreIsRemoved; what was made before components stays.
func TestWhatANewerReleaseHasNoMoreIsRemoved(t *testing.T) {
	const at = "/api/v1/namespaces/shop/configmaps/web"
	api, c := withArgo(t)
	env := published(t, api.URL, "")
	installing(t, env, "namespaces: [{name: cd}]\n")
	web := kube.Member{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "shop", Name: "web"}
	require.NoError(t, c.KeepMembers(t.Context(), "demo", kube.ObjectsOf("web"), []kube.Member{web}))
	require.NoError(t, installed.Removal{Components: []installed.Component{{Name: "web"}, {Name: "argocd"}}}.Write(t.Context(), c, "demo"))
	api.Set(t, at, "metadata: {name: web, namespace: shop, "+byUs+"}")
	in := contract.PruneInput{Components: []string{"argocd", "web"}}
	out, err := runPrune(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, contract.Pruned{}, out)

	require.NoError(t, installed.Removal{Components: []installed.Component{{Name: "web"}, {Name: "argocd"}}}.Write(t.Context(), c, "demo"))
	in.Components = []string{"argocd"}
	_, err = step.Unchanged(runPrune)(t.Context(), env, in)
	require.ErrorIs(t, err, plan.ErrChange)
	out, err = runPrune(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, contract.Pruned{Components: []string{"web"}, Objects: []string{"ConfigMap shop/web"}}, out)
	require.Nil(t, api.Get(at))
}

// TestAPlatformWithoutAnAppAnyMore: the last ones go as others do that are switched off,
// with what they brought, by Argo CD.
func TestAPlatformWithoutAnAppAnyMore(t *testing.T) {
	const atController = "/apis/apps/v1/namespaces/cd/statefulsets/argo-cd-argocd-application-controller"
	api, _ := withArgo(t)
	env := published(t, api.URL, "")
	installing(t, env, "namespaces: [{name: cd}]\n")
	api.Set(t, atRoot, "{metadata: {name: root, namespace: cd, "+byUs+"}, status: {resources: [{group: argoproj.io, kind: Application, namespace: cd, name: web}]}}")
	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/mine", "metadata: {name: mine, namespace: cd, labels: {"+kube.DeploymentLabel+": demo}}")
	c, err := kube.Connect(env.Kubeconfig, nil)
	require.NoError(t, err)
	require.NoError(t, installed.Removal{Argo: "cd"}.Write(t.Context(), c, "demo"))
	in := contract.PruneInput{Components: []string{"argocd"}, Apps: true}
	out, err := runPrune(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, contract.Pruned{}, out, "there are apps")

	in.Apps = false
	out, err = runPrune(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, []string{"Application cd/root: there is no Argo CD that would remove what it brought"}, out.Kept)
	require.NotNil(t, api.Get(atRoot))

	api.Set(t, atController, "metadata: {name: argo-cd-argocd-application-controller, namespace: cd, labels: {app.kubernetes.io/name: argocd-application-controller}}")
	_, err = step.Unchanged(runPrune)(t.Context(), env, in)
	require.ErrorIs(t, err, plan.ErrChange)
	require.NotNil(t, api.Get(atRoot))
	held := make(chan any, 1)
	go func() { // what Argo CD does
		for range time.Tick(10 * time.Millisecond) {
			if meta := api.Get(atRoot)["metadata"].(map[string]any); meta["deletionTimestamp"] != nil {
				held <- meta["finalizers"]
				api.Delete(atRoot)
				return
			}
		}
	}()
	out, err = runPrune(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, contract.Pruned{Objects: []string{"Application cd/root"}}, out)
	require.Equal(t, []any{argo.CascadeFinalizer}, <-held, "without it, what the apps brought would stay")
	require.NotNil(t, api.Get("/apis/argoproj.io/v1alpha1/namespaces/cd/applications/mine"))
	require.False(t, strings.Contains(strings.Join(api.Writes(), " "), "mine"))
}
