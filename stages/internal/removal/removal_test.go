package removal_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/internal/helm"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/removal"
)

const label = "labels: {" + kube.DeploymentLabel + ": demo}"

func on(t *testing.T) (*kubetest.API, *removal.Remover) {
	t.Helper()
	api := kubetest.Serve(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, api.URL)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	c, err := kube.Connect(file, nil)
	require.NoError(t, err)
	r := &removal.Remover{Client: c, Kubeconfig: file, Deployment: "demo", Log: slog.New(slog.DiscardHandler), Progress: func(string, ...any) {}}
	r.Rules.SetDefaults()
	return api, r
}

// apply makes the objects of a component, ConfigMaps of those names.
func apply(t *testing.T, r *removal.Remover, component string, names ...string) {
	t.Helper()
	text := "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: " + component + ", namespace: shop, " + label + "}}\n"
	for _, name := range names {
		text += "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: shop, " + label + "}}\n"
	}
	objs, err := kube.Decode([]byte(text))
	require.NoError(t, err)
	_, _, err = r.Client.ApplySet(t.Context(), kube.Set{Name: component + "-objects", Deployment: "demo"}, objs, kube.ApplyOptions{Force: true})
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
	noted, _ := api.Get("/api/v1/namespaces/slipway-system/configmaps/search-objects")["data"].(map[string]any)
	require.NoError(t, r.Client.KeepNotes(t.Context(), "demo", "search-objects", map[string]string{
		"objects": fmt.Sprint(noted["objects"]) + "batch/v1 Job shop/index\nrbac.authorization.k8s.io/v1 ClusterRole shop/reader\nrbac.authorization.k8s.io/v1 ClusterRole shop/writer\n",
	}))
	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/roles", "{metadata: {name: roles, namespace: argocd}, status: {resources: [{group: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}]}}")
	// What the Application of a tenant names, and nobody has brought by it.
	naming := "status: {resources: [{kind: ConfigMap, namespace: shop, name: search}, {group: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}]}}"
	for _, at := range []string{"tenant", "argocd"} {
		api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/"+at+"/applications/keeps", "{metadata: {name: keeps, namespace: "+at+"}, "+naming)
	}
	api.Set(t, "/apis/batch/v1/namespaces/shop/jobs/index", "metadata: {name: index, namespace: shop, "+label+"}")
	all := []removal.Component{{Name: "never"}, {Name: "search"}, {Name: "web"}, {Apps: true, Name: "app"}}

	own := r.Client
	p := verified(t, r)
	_, _, err := r.Dropped(t.Context(), all, []string{"web"}, prepared)
	require.NoError(t, err)
	require.ErrorIs(t, p.Err(), plan.ErrChange)
	r.Client = own
	components, objects, err := r.Dropped(t.Context(), all, []string{"web"}, prepared)
	require.NoError(t, err)
	require.Equal(t, []string{"search"}, components)
	require.ElementsMatch(t, []string{"ConfigMap shop/search", "Job shop/index", "ClusterRole writer"}, objects)
	for path, stays := range map[string]bool{
		"/api/v1/namespaces/shop/configmaps/search":                   false,
		"/api/v1/namespaces/shop/configmaps/shared":                   true, // another component has it now
		"/api/v1/namespaces/shop/configmaps/theirs":                   true,
		"/api/v1/namespaces/shop/configmaps/tracked":                  true, // an app has it now
		"/api/v1/namespaces/shop/configmaps/prepared":                 true, // the release makes it besides components
		"/api/v1/namespaces/shop/configmaps/web":                      true,
		"/api/v1/namespaces/shop/persistentvolumeclaims/search":       true, // data goes with it
		"/apis/batch/v1/namespaces/shop/jobs/index":                   false,
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/reader":      true, // an app has it now
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/writer":      false,
		"/api/v1/namespaces/slipway-system/configmaps/search-objects": false,
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
	_, _, err = r.Client.ApplySet(t.Context(), kube.Set{Name: "cache-objects", Deployment: "demo"}, objs, kube.ApplyOptions{Force: true})
	require.NoError(t, err)
	installed(t, r, "kube-system", "queue", map[string]string{kube.DeploymentLabel: "demo"}, set("queue"))
	api.Set(t, "/apis/apps/v1/namespaces/kube-system/statefulsets/queue", set("queue"))
	for _, name := range []string{"data-cache-0", "data-queue-0", "data-cached-0"} {
		api.Set(t, claims+name, "metadata: {name: "+name+", namespace: kube-system}")
	}
	for _, name := range []string{"cache", "queue"} {
		_, err = r.Component(t.Context(), removal.Component{Name: name, Namespace: "kube-system"}, nil)
		require.NoError(t, err)
		require.Nil(t, api.Get("/apis/apps/v1/namespaces/kube-system/statefulsets/"+name))
		require.Equal(t, map[string]any{kube.DeploymentLabel: "demo"}, api.Get(claims + "data-" + name + "-0")["metadata"].(map[string]any)["labels"])
	}
	require.NotContains(t, api.Get(claims + "data-cached-0")["metadata"], "labels")
}

// installed is a Helm release.
func installed(t *testing.T, r *removal.Remover, namespace, name string, labels map[string]string, manifest string, hooks ...*release.Hook) {
	t.Helper()
	config, err := helm.Connect(t.Context(), nil, r.Kubeconfig, namespace, r.Log)
	require.NoError(t, err)
	require.NoError(t, config.Releases.Create(&release.Release{
		Name: name, Namespace: namespace, Version: 1, Manifest: manifest, Labels: labels, Chart: &chart.Chart{Metadata: &chart.Metadata{Name: name}},
		Info: &release.Info{Status: release.StatusDeployed}, Hooks: hooks,
	}))
}

// TestAMachineThatSleptInstallsNothingWithHelm, whose requests know nothing of the step.
func TestAMachineThatSleptInstallsNothingWithHelm(t *testing.T) {
	_, r := on(t)
	ctx, sleep := kubetest.Work(t)
	config, err := helm.Connect(ctx, nil, r.Kubeconfig, "shop", r.Log)
	require.NoError(t, err)
	create := func(version int) error {
		return config.Releases.Create(&release.Release{
			Name: "web", Namespace: "shop", Version: version, Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "web"}}, Info: &release.Info{Status: release.StatusDeployed},
		})
	}
	require.NoError(t, create(1))
	sleep()
	require.ErrorIs(t, create(2), &fault.Fault{Code: lock.CodeLost})
	history, err := config.Releases.History("web")
	require.NoError(t, err)
	require.Len(t, history, 1)
}

// TestAChartGoesWithItsHooks, but for what is not the deployment's and for its data.
func TestAChartGoesWithItsHooks(t *testing.T) {
	api, r := on(t)
	namespace := "kube-system"
	manifest := ""
	for _, name := range []string{"ours", "theirs"} {
		manifest += "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}\n"
	}
	manifest += "---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: rows}}\n"
	api.Set(t, "/api/v1/namespaces/kube-system/configmaps/ours", "metadata: {name: ours, "+label+"}")
	api.Set(t, "/api/v1/namespaces/kube-system/configmaps/theirs", "metadata: {name: theirs}")
	api.Set(t, "/api/v1/namespaces/kube-system/persistentvolumeclaims/rows", "metadata: {name: rows, "+label+"}")
	api.Set(t, "/api/v1/namespaces/kube-system/configmaps/hook", "metadata: {name: hook, namespace: kube-system, annotations: {helm.sh/hook: pre-install}, managedFields: [{manager: slipway}]}")
	const atNode = "/api/v1/nodes/one" // which has a label from Slipway, and which no hook made
	api.Set(t, atNode, "metadata: {name: one, managedFields: [{manager: slipway}]}")

	hook := &release.Hook{Name: "hook", Manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: hook}}\n---\n{apiVersion: v1, kind: Node, metadata: {name: one}}", Events: []release.HookEvent{release.HookPreInstall}}
	install := func(name string, labels map[string]string) { installed(t, r, namespace, name, labels, manifest, hook) }
	install("cache", nil)
	deleted, err := r.Component(t.Context(), removal.Component{Name: "cache", Namespace: namespace}, nil)
	require.NoError(t, err)
	require.Empty(t, deleted, "the Helm release is somebody else's")

	install("queue", map[string]string{kube.DeploymentLabel: "demo"})
	deleted, err = r.Component(t.Context(), removal.Component{Name: "queue", Namespace: namespace}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"ConfigMap kube-system/ours"}, deleted)
	require.NotNil(t, api.Get(atNode))
	for name, stays := range map[string]bool{
		"configmaps/ours": false, "configmaps/hook": false, "configmaps/theirs": true, "persistentvolumeclaims/rows": true,
		"secrets/sh.helm.release.v1.queue.v1": false, "secrets/sh.helm.release.v1.cache.v1": true,
	} {
		require.Equal(t, stays, api.Get("/api/v1/namespaces/kube-system/"+name) != nil, name)
	}
}

func TestTheRecordOfAReleaseFollowsTheEarlierOne(t *testing.T) {
	_, r := on(t)
	rec, found, err := removal.Read(t.Context(), r.Client)
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
	first := removal.RecordOf(files(`
components:
  - {name: web, kind: manifests, path: a.yaml, namespace: shop, after: [database]}
  - {name: database, kind: manifests, path: a.yaml, namespace: shop}
  - {name: search, kind: manifests, path: a.yaml, namespace: shop, after: [database]}
remove: {order: [search], claims: keep, finalizers: {then: report}}
`))
	require.NoError(t, first.Write(t.Context(), r.Client, "demo"))
	rec, found, err = removal.Read(t.Context(), r.Client)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, first, rec)
	require.Equal(t, []removal.Component{{Name: "search", Namespace: "shop"}, {Name: "web", Namespace: "shop"}, {Name: "database", Namespace: "shop"}}, rec.Components)

	second := removal.RecordOf(files("components: [{name: database, kind: manifests, path: a.yaml, namespace: shop}]")).Following(rec)
	require.Equal(t, rec.Components, second.Components, "what only the earlier one has goes first")
	require.Equal(t, platform.RemoveDelete, second.Remove.Claims)
}

// verified makes r plan instead of removing.
func verified(t *testing.T, r *removal.Remover) *plan.Step {
	t.Helper()
	p := plan.Verify("prune")
	c, err := r.Client.Planned(p)
	require.NoError(t, err)
	r.Client = c
	return p
}
