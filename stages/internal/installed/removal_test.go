package installed_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

const label = "labels: {" + kube.DeploymentLabel + ": demo}"

func on(t *testing.T) (*kubetest.API, *installed.Remover) {
	t.Helper()
	api := kubetest.Serve(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, api.URL)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	c, err := kube.Connect(file, nil)
	require.NoError(t, err)
	r := &installed.Remover{Client: c, Deployment: "demo", Log: slog.New(slog.DiscardHandler), Progress: func(string, ...any) {}}
	r.Rules.SetDefaults()
	return api, r
}

// apply makes the objects of a component, ConfigMaps of those names.
func apply(t *testing.T, r *installed.Remover, component string, names ...string) {
	t.Helper()
	text := "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: " + component + ", namespace: shop, " + label + "}}\n"
	for _, name := range names {
		text += "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: shop, " + label + "}}\n"
	}
	objs, err := kube.Decode([]byte(text))
	require.NoError(t, err)
	_, _, err = r.Client.ApplySet(t.Context(), kube.Set{Name: component + "-objects", Deployment: "demo"}, objs, kube.ApplyOptions{})
	require.NoError(t, err)
}

func TestComponentsThatAreNotInstalledAnyMore(t *testing.T) {
	api, r := on(t)
	r.Argo = "argocd"
	apply(t, r, "web", "web", "shared")
	apply(t, r, "search", "search", "shared", "theirs", "tracked", "prepared")
	api.Set(t, "/api/v1/namespaces/shop/configmaps/tracked", "metadata: {annotations: {argocd.argoproj.io/tracking-id: 'search:/ConfigMap:shop/tracked'}}")
	prepared := []kube.Member{{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "shop", Name: "prepared"}}
	api.Define("argoproj.io/v1alpha1", "Application", true)
	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/search", "{metadata: {name: search, namespace: argocd}, status: {resources: [{kind: ConfigMap, namespace: shop, name: tracked}]}}")
	api.Set(t, "/api/v1/namespaces/shop/configmaps/theirs", "metadata: {labels: {"+kube.DeploymentLabel+": other}}")
	api.Define("rbac.authorization.k8s.io/v1", "ClusterRole", false)
	for _, name := range []string{"reader", "writer"} { // noted before their kind was known
		api.Set(t, "/apis/rbac.authorization.k8s.io/v1/clusterroles/"+name, "metadata: {name: "+name+", "+label+"}")
	}
	api.Set(t, "/apis/rbac.authorization.k8s.io/v1/clusterroles/reader", "metadata: {managedFields: [{manager: argocd-controller}]}") // with a label as its mark
	noted, err := r.Client.Members(t.Context(), "search-objects")
	require.NoError(t, err)
	roles := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	require.NoError(t, r.Client.KeepMembers(t.Context(), "demo", "search-objects", append(noted,
		kube.Member{Kind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, Namespace: "shop", Name: "index"},
		kube.Member{Kind: roles, Namespace: "shop", Name: "reader"}, kube.Member{Kind: roles, Namespace: "shop", Name: "writer"},
	)))
	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/roles", "{metadata: {name: roles, namespace: argocd}, status: {resources: [{group: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}]}}")
	// What the Application of a tenant names, and nobody has brought by it.
	naming := "status: {resources: [{kind: ConfigMap, namespace: shop, name: search}, {group: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}]}}"
	for _, at := range []string{"tenant", "argocd"} {
		api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/"+at+"/applications/keeps", "{metadata: {name: keeps, namespace: "+at+"}, "+naming)
	}
	api.Set(t, "/apis/batch/v1/namespaces/shop/jobs/index", "metadata: {name: index, namespace: shop, "+label+"}")
	all := []installed.Component{{Name: "never"}, {Name: "search"}, {Name: "web"}, {Apps: true, Name: "app"}}

	own := r.Client
	p := verified(t, r)
	_, _, err = r.Dropped(t.Context(), all, []string{"web"}, prepared)
	require.NoError(t, err)
	require.ErrorIs(t, p.Err(), plan.ErrChange)
	r.Client = own
	components, objects, err := r.Dropped(t.Context(), all, []string{"web"}, prepared)
	require.NoError(t, err)
	require.Equal(t, []string{"search"}, components)
	require.ElementsMatch(t, []string{"ConfigMap shop/search", "Job shop/index", "ClusterRole writer"}, objects)
	for path, stays := range map[string]bool{
		"/api/v1/namespaces/shop/configmaps/search":                false,
		"/api/v1/namespaces/shop/configmaps/shared":                true, // another component has it now
		"/api/v1/namespaces/shop/configmaps/theirs":                true,
		"/api/v1/namespaces/shop/configmaps/tracked":               true, // an app has it now
		"/api/v1/namespaces/shop/configmaps/prepared":              true, // the release makes it besides components
		"/api/v1/namespaces/shop/configmaps/web":                   true,
		"/api/v1/namespaces/shop/persistentvolumeclaims/search":    true, // data goes with it
		"/apis/batch/v1/namespaces/shop/jobs/index":                false,
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/reader":   true, // an app has it now
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/writer":   false,
		"/api/v1/namespaces/slipway-system/secrets/search-objects": false,
	} {
		require.Equal(t, stays, api.Get(path) != nil, path)
	}
	p = verified(t, r)
	components, _, err = r.Dropped(t.Context(), all, []string{"web"}, prepared)
	require.NoError(t, err)
	require.NoError(t, p.Err(), "there is nothing to do")
	require.Empty(t, components)
}

// TestClaimsThatOutlastTheirStatefulSetAreFound by a destroy, wherever they are.
func TestClaimsThatOutlastTheirStatefulSetAreFound(t *testing.T) {
	const claims = "/api/v1/namespaces/kube-system/persistentvolumeclaims/"
	set := func(name string) string {
		return "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: " + name + ", namespace: kube-system, " + label + "}, spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}\n"
	}
	api, r := on(t)
	objs, err := kube.Decode([]byte(set("cache")))
	require.NoError(t, err)
	_, _, err = r.Client.ApplySet(t.Context(), kube.Set{Name: "cache-objects", Deployment: "demo"}, objs, kube.ApplyOptions{})
	require.NoError(t, err)
	for _, name := range []string{"data-cache-0", "data-cached-0"} {
		api.Set(t, claims+name, "metadata: {name: "+name+", namespace: kube-system}")
	}
	_, err = r.Component(t.Context(), installed.Component{Name: "cache"}, nil)
	require.NoError(t, err)
	require.Nil(t, api.Get("/apis/apps/v1/namespaces/kube-system/statefulsets/cache"))
	require.Equal(t, map[string]any{kube.DeploymentLabel: "demo"}, api.Get(claims + "data-cache-0")["metadata"].(map[string]any)["labels"])
	require.NotContains(t, api.Get(claims + "data-cached-0")["metadata"], "labels")
}

// TestAChartGoesWithItsHooks, but for what is not the deployment's and for its data.
func TestAChartGoesWithItsHooks(t *testing.T) {
	api, r := on(t)
	api.Controller = func(path string, o map[string]any) {
		if strings.Contains(path, "/jobs/") {
			o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
		}
	}
	const at = "/api/v1/namespaces/shop/"
	apply(t, r, "queue", "ours", "theirs", "hook")
	api.Set(t, at+"configmaps/hook", "metadata: {annotations: {helm.sh/hook: pre-install}}")
	api.Set(t, at+"configmaps/theirs", "metadata: {labels: {"+kube.DeploymentLabel+": other}}")
	hook := func(kind, name, event string) string {
		return "---\n{apiVersion: " + kind + ", metadata: {name: " + name + ", namespace: shop, " + label + ", annotations: {helm.sh/hook: " + event + "}}}\n"
	}
	packed, err := installed.Pack(hook("v1, kind: ConfigMap", "hook", "pre-install") + hook("batch/v1, kind: Job", "before", "pre-delete") + hook("batch/v1, kind: Job", "after", "post-delete"))
	require.NoError(t, err)
	require.NoError(t, r.Client.KeepNotes(t.Context(), "demo", kube.ChartOf("queue"), map[string]string{"hooks": packed}))

	own := r.Client
	p := verified(t, r)
	_, err = r.Component(t.Context(), installed.Component{Name: "queue"}, nil)
	require.NoError(t, err)
	require.ErrorIs(t, p.Err(), plan.ErrChange)
	r.Client = own
	deleted, err := r.Component(t.Context(), installed.Component{Name: "queue"}, nil)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"ConfigMap shop/ours", "ConfigMap shop/hook"}, deleted)
	for path, stays := range map[string]bool{
		at + "configmaps/ours": false, at + "configmaps/hook": false, at + "configmaps/theirs": true, at + "persistentvolumeclaims/queue": true,
		"/apis/batch/v1/namespaces/shop/jobs/before": false, "/apis/batch/v1/namespaces/shop/jobs/after": false,
		"/api/v1/namespaces/slipway-system/secrets/queue-objects": false, "/api/v1/namespaces/slipway-system/secrets/queue-chart": false,
	} {
		require.Equal(t, stays, api.Get(path) != nil, path)
	}
	writes := api.Writes()
	require.Greater(t, slices.Index(writes, "DELETE "+at+"configmaps/hook"), slices.Index(writes, "PATCH /apis/batch/v1/namespaces/shop/jobs/after"), "hooks after the deletion may need it")
	before, ours, after := slices.Index(writes, "PATCH /apis/batch/v1/namespaces/shop/jobs/before"), slices.Index(writes, "DELETE "+at+"configmaps/ours"), slices.Index(writes, "PATCH /apis/batch/v1/namespaces/shop/jobs/after")
	require.Less(t, 0, before)
	require.Less(t, before, ours)
	require.Less(t, ours, after)
}

// TestAnotherDeploymentsHooksDoNotRun where its component has the same name.
func TestAnotherDeploymentsHooksDoNotRun(t *testing.T) {
	api, r := on(t)
	apply(t, r, "queue", "ours")
	packed, err := installed.Pack("{apiVersion: v1, kind: ConfigMap, metadata: {name: before, namespace: shop, labels: {" + kube.DeploymentLabel + ": other}, annotations: {helm.sh/hook: pre-delete}}}")
	require.NoError(t, err)
	require.NoError(t, r.Client.KeepNotes(t.Context(), "other", kube.ChartOf("queue"), map[string]string{"hooks": packed}))
	deleted, err := r.Component(t.Context(), installed.Component{Name: "queue"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"ConfigMap shop/ours"}, deleted)
	require.NotContains(t, api.Writes(), "PATCH /api/v1/namespaces/shop/configmaps/before")
	require.NotNil(t, api.Get("/api/v1/namespaces/slipway-system/secrets/queue-chart"), "it is theirs")
}

// TestARunThatEndsDuringAHook deletes nothing: the next one runs the hook.
func TestARunThatEndsDuringAHook(t *testing.T) {
	api, r := on(t)
	apply(t, r, "queue", "ours")
	ctx, cancel := context.WithCancel(t.Context())
	api.Controller = func(path string, _ map[string]any) {
		if strings.Contains(path, "/jobs/") {
			cancel()
		}
	}
	packed, err := installed.Pack("{apiVersion: batch/v1, kind: Job, metadata: {name: before, namespace: shop, " + label + ", annotations: {helm.sh/hook: pre-delete}}}")
	require.NoError(t, err)
	require.NoError(t, r.Client.KeepNotes(t.Context(), "demo", kube.ChartOf("queue"), map[string]string{"hooks": packed}))
	_, err = r.Component(ctx, installed.Component{Name: "queue"}, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NotNil(t, api.Get("/api/v1/namespaces/shop/configmaps/ours"))
	require.NotNil(t, api.Get("/api/v1/namespaces/slipway-system/secrets/queue-chart"))
}

func TestTheRecordOfAReleaseFollowsTheEarlierOne(t *testing.T) {
	_, r := on(t)
	rec, found, err := installed.ReadRemoval(t.Context(), r.Client, "demo")
	require.NoError(t, err)
	require.False(t, found)
	require.Equal(t, platform.RemoveDelete, rec.Remove.Claims)

	files := func(text string) *platform.Release {
		release, err := platform.Load(fstest.MapFS{
			"platform.yaml": {Data: []byte("apiVersion: slipway/v2\nname: shop\nversion: 1.0.0\nnamespaces: [{name: shop}]\n" + text)},
			"a.yaml":        {Data: []byte("{}")},
		})
		require.NoError(t, err)
		return release
	}
	first := installed.RemovalOf(files(`
components:
  - {name: web, kind: manifests, path: a.yaml, namespace: shop, after: [database]}
  - {name: database, kind: manifests, path: a.yaml, namespace: shop}
  - {name: search, kind: manifests, path: a.yaml, namespace: shop, after: [database]}
remove: {order: [search], claims: keep, finalizers: {then: report}}
`))
	require.NoError(t, first.Write(t.Context(), r.Client, "demo"))
	rec, found, err = installed.ReadRemoval(t.Context(), r.Client, "demo")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, first, rec)
	others, found, err := installed.ReadRemoval(t.Context(), r.Client, "other")
	require.NoError(t, err)
	require.False(t, found, "it is not theirs")
	require.Empty(t, others.Components)
	require.Equal(t, []installed.Component{{Name: "search"}, {Name: "web"}, {Name: "database"}}, rec.Components)

	second := installed.RemovalOf(files("components: [{name: database, kind: manifests, path: a.yaml, namespace: shop}]")).Following(rec)
	require.Equal(t, rec.Components, second.Components, "what only the earlier one has goes first")
	require.Equal(t, platform.RemoveDelete, second.Remove.Claims)
}

// verified makes r plan instead of removing.
func verified(t *testing.T, r *installed.Remover) *plan.Step {
	t.Helper()
	p := plan.Verify("prune")
	c, err := r.Client.Planned(p)
	require.NoError(t, err)
	r.Client = c
	return p
}
