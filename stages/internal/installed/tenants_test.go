package installed

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

const (
	teamArgo = "/apis/argoproj.io/v1alpha1/namespaces/team/"
	classes  = "/apis/scheduling.k8s.io/v1/priorityclasss/" // as kubetest has the plural

	// naming is a status in which a tenant's Application names what is not the tenant's.
	naming = "status: {resources: [{group: rbac.authorization.k8s.io, kind: ClusterRole, name: theirs}, {group: argoproj.io, kind: Application, namespace: team, name: theirs}, " +
		"{group: apiextensions.k8s.io, kind: CustomResourceDefinition, name: gizmos.example.com}]}"
)

// TestATenantAddsNothingToWhatIsRemoved, whatever its Applications say of themselves: whoever may
// write to one can give it any label, mark, field manager, owner and status.
func TestATenantAddsNothingToWhatIsRemoved(t *testing.T) {
	api, client := withSets(t, "a")
	cascade(t, api, "a")
	api.Set(t, "/api/v1/namespaces/slipway-system", "metadata: {creationTimestamp: '2026-01-02T00:00:00Z'}")
	gizmo := strings.Replace(definition("gizmo"), byUs, byArgo+", creationTimestamp: '2026-01-03T00:00:00Z'", 1)
	api.Set(t, crds+"gizmos.example.com", gizmo)
	forged := func(kind, name, more string) string {
		return "{metadata: {name: " + name + ", namespace: team, uid: " + name + ", " + used + ", " + more + tracked("a-a", "argoproj.io/"+kind+":team/"+name) + "}, " + naming + "}"
	}
	mine := map[string]string{
		"applications/labelled":   forged("Application", "labelled", ""),
		"applications/of-a-set":   forged("Application", "of-a-set", "ownerReferences: [{uid: set-a}], "),
		"applicationsets/set":     forged("ApplicationSet", "set", ""),
		"applications/of-its-set": forged("Application", "of-its-set", "ownerReferences: [{uid: set}], "),
		"applications/undeclared": forged("Application", "undeclared", ""),
	}
	for path, text := range mine {
		api.Set(t, teamArgo+path, text)
	}
	// Argo CD lists what bears its mark, also where the tree has no such object.
	api.Set(t, argoAPI+"applications/a-a", "status: {resources: [{group: rbac.authorization.k8s.io, kind: ClusterRole, name: of-a}, "+
		"{group: argoproj.io, kind: Application, namespace: team, name: undeclared, requiresPruning: true}]}")

	left, err := remover(client).Inventory(t.Context(), false)
	require.NoError(t, err)
	require.Contains(t, left.Names, "Application shop/a-a")
	require.Contains(t, left.Names, "ClusterRole of-a", "a plan names what goes with an Application")
	require.Contains(t, left.Names, "Application team/undeclared", "Argo CD removes what bears its mark, and nothing is removed that a plan does not name")
	for _, o := range []string{"ClusterRole theirs", "CustomResourceDefinition gizmos.example.com", "Application team/labelled", "ApplicationSet team/set"} {
		require.NotContains(t, left.Names, o)
	}

	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"shop/a-a"}, out.Applications)
	for path := range mine {
		require.NotNil(t, api.Get(teamArgo+path), path)
	}
	meta, _ := api.Get(crds + "gizmos.example.com")["metadata"].(map[string]any)
	require.NotNil(t, meta)
	require.NotContains(t, meta, "labels")
	require.Contains(t, out.Kept, "Application team/labelled (with the deployment's label, though Slipway did not make it)")
	require.Contains(t, out.Kept, "ApplicationSet team/set (with the deployment's label, though Slipway did not make it)")
	untouched(t, api)
	empty(t, client)
}

// TestWhatAPushOnlyNamesStays: Argo CD's project keeps an Application of the tree from bringing a
// ClusterRole and a definition, which another Argo CD in the cluster has brought without a mark.
func TestWhatAPushOnlyNamesStays(t *testing.T) {
	api, client := withSets(t, "a")
	cascade(t, api, "a")
	api.Set(t, "/api/v1/namespaces/slipway-system", "metadata: {creationTimestamp: '2026-01-02T00:00:00Z'}")
	api.Set(t, crds+"gizmos.example.com", strings.Replace(definition("gizmo"), byUs, byArgo+", creationTimestamp: '2026-01-03T00:00:00Z'", 1))
	api.Set(t, rolesAPI+"of-another", "metadata: {name: of-another, uid: of-another, "+byArgo+"}")
	api.Set(t, argoAPI+"applications/a-a", "status: {resources: [{group: rbac.authorization.k8s.io, kind: ClusterRole, name: of-another, status: Unknown, health: {status: Missing}}, "+
		"{group: apiextensions.k8s.io, kind: CustomResourceDefinition, name: gizmos.example.com, status: Unknown, health: {status: Missing}}]}")

	left, err := remover(client).Inventory(t.Context(), false)
	require.NoError(t, err)
	require.NotContains(t, left.Names, "ClusterRole of-another")
	require.NotContains(t, left.Names, "CustomResourceDefinition gizmos.example.com")
	_, err = removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	for _, path := range []string{crds + "gizmos.example.com", rolesAPI + "of-another"} {
		require.NotNil(t, api.Get(path), path)
		require.NotContains(t, api.Get(path)["metadata"], "labels", path)
	}
	untouched(t, api)
}

// TestWhatAPushedApplicationSaysOfItselfCountsForNothing beyond its project: Argo CD leaves one
// alone that says so, and its status is what the push has written.
func TestWhatAPushedApplicationSaysOfItselfCountsForNothing(t *testing.T) {
	api, client := withSets(t)
	api.Set(t, "/api/v1/namespaces/slipway-system", "metadata: {creationTimestamp: '2026-01-02T00:00:00Z'}")
	api.Set(t, argoAPI+"appprojects/apps", "{metadata: {name: apps, namespace: shop}, spec: {destinations: [{namespace: shop}, {namespace: web-*}], clusterResourceWhitelist: [{group: scheduling.k8s.io, kind: PriorityClass}]}}")
	api.Define("scheduling.k8s.io/v1", "PriorityClass", false)
	role := func(name string) string {
		return "{group: rbac.authorization.k8s.io, kind: ClusterRole, name: " + name + ", health: {status: Healthy}}"
	}
	api.Set(t, argoAPI+"applications/pushed", "{metadata: {name: pushed, namespace: shop, uid: pushed, labels: {"+kube.DeploymentLabel+": demo}, annotations: {argocd.argoproj.io/skip-reconcile: 'true', "+
		kube.TrackingID+": 'root:argoproj.io/Application:shop/pushed'}}, spec: {project: apps}, status: {resources: ["+role("by-label")+", "+role("by-mark")+", "+
		"{group: scheduling.k8s.io, kind: PriorityClass, name: data}, {group: argoproj.io, kind: Application, namespace: team, name: theirs}, "+
		"{group: apiextensions.k8s.io, kind: CustomResourceDefinition, name: gizmos.example.com}]}}")
	theirs := map[string]string{ // of another Argo CD, which marks with labels, or has an Application of that name
		rolesAPI + "by-label":            "metadata: {name: by-label, " + byArgo + "}",
		rolesAPI + "by-mark":             "metadata: {name: by-mark, " + tracked("pushed", "rbac.authorization.k8s.io/ClusterRole:/by-mark") + "}",
		teamArgo + "applications/theirs": "metadata: {name: theirs, namespace: team, uid: theirs, " + byArgo + "}",
		crds + "gizmos.example.com":      strings.Replace(definition("gizmo"), byUs, byArgo+", creationTimestamp: '2026-01-03T00:00:00Z'", 1),
	}
	before := map[string]map[string]any{}
	for path, text := range theirs {
		api.Set(t, path, text)
		before[path] = api.Get(path)
	}
	api.Set(t, classes+"data", "{metadata: {name: data, "+tracked("pushed", "scheduling.k8s.io/PriorityClass:/data")+"}, value: 1}")
	for range 2 { // the second time the project is gone, as after a removal that was interrupted
		r := found(t, client)
		require.NoError(t, r.findApplications(t.Context()))
		require.Equal(t, map[types.UID]bool{"pushed": true}, r.platform)
		api.Delete(argoAPI + "appprojects/apps")
		for _, a := range []string{"pushed"} {
			live, err := r.Client.Live(t.Context(), argo.Member("shop", a))
			require.NoError(t, err)
			require.NoError(t, r.markOwned(t.Context(), *live))
		}
	}
	require.Equal(t, map[string]any{kube.DeploymentLabel: "demo"}, api.Get(classes + "data")["metadata"].(map[string]any)["labels"])
	left, err := remover(client).Inventory(t.Context(), false)
	require.NoError(t, err)
	require.Contains(t, left.Names, "Application shop/pushed")
	for path := range theirs {
		require.Equal(t, before[path], api.Get(path), path)
	}
}

// TestAnApplicationInATenantsNamespace that the deployment wrote down takes along what Argo CD
// has marked as brought by it, and nothing else that a tenant has it name.
func TestAnApplicationInATenantsNamespace(t *testing.T) {
	api, client := withSets(t)
	record(t, client, func(rec *Removal) {
		rec.Components = append(rec.Components, Component{Name: "pages"})
	})
	pages := kube.Member{Namespace: "team", Name: "pages"}
	pages.Kind.Group, pages.Kind.Version, pages.Kind.Kind = "argoproj.io", "v1alpha1", "Application"
	require.NoError(t, client.KeepMembers(t.Context(), "demo", kube.ObjectsOf("pages"), []kube.Member{pages}))
	api.Set(t, teamArgo+"applications/pages", "{metadata: {name: pages, namespace: team, uid: pages, "+used+"}, "+strings.Replace(naming, "[", "[{group: rbac.authorization.k8s.io, kind: ClusterRole, name: of-pages}, ", 1)+"}")
	api.Set(t, rolesAPI+"of-pages", "metadata: {name: of-pages, "+tracked("team_pages", "rbac.authorization.k8s.io/ClusterRole:/of-pages")+"}")
	api.Set(t, rolesAPI+"of-another", "metadata: {name: of-another, "+tracked("pages", "rbac.authorization.k8s.io/ClusterRole:/of-another")+"}")
	r := found(t, client)
	listed, err := Listed(t.Context(), client, []Component{{Name: "pages"}})
	require.NoError(t, err)
	r.listed = listed
	require.NoError(t, r.findApplications(t.Context()))
	live, err := client.Live(t.Context(), pages)
	require.NoError(t, err)
	require.NoError(t, r.markOwned(t.Context(), *live))
	require.Contains(t, api.Get(rolesAPI + "of-pages")["metadata"], "labels")
	require.NotContains(t, api.Get(rolesAPI + "of-another")["metadata"], "labels", "it is of the Application pages beside Argo CD")
	untouched(t, api)
}

// TestConfigMapsWithTheNamesOfNotesCountForNothing: a tenant that may write these, and no Secrets
// beside them, does not decide what is removed.
func TestConfigMapsWithTheNamesOfNotesCountForNothing(t *testing.T) {
	api, client := withSets(t, "a")
	for name, data := range map[string]string{
		"slipway-removal": `{removal.json: '{"remove":{"crds":"delete"},"argo":"team"}'}`,
		"cache-objects":   `{inventory: '{"entries":[{"id":"team_theirs_argoproj.io_Application","v":"v1alpha1"}]}'}`,
		"slipway-nodes":   `{cache: '{"node":"two","key":"storage","value":"fast"}'}`,
	} {
		api.Set(t, "/api/v1/namespaces/slipway-system/configmaps/"+name, "{metadata: {name: "+name+", namespace: slipway-system, "+byUs+"}, data: "+data+"}")
	}
	_, err := remover(client).Platform(t.Context(), false)
	require.NoError(t, err)
	untouched(t, api)
}

// TestALabelOfANodeThatSomebodyChangedStays, and so does that of another node of its name.
func TestALabelOfANodeThatSomebodyChangedStays(t *testing.T) {
	const at = "/api/v1/nodes/one"
	for change, want := range map[string]map[string]any{
		"labels: {storage: slow}": {"storage": "slow", "zone": "a"},
		"uid: one-2":              {"storage": "fast", "zone": "a"},
	} {
		api, client := shared(t)
		api.Set(t, at, "metadata: {"+change+"}")
		out, err := removed(t.Context(), client, contract.RemoveInput{})
		require.NoError(t, err)
		require.Empty(t, out.Nodes)
		require.Equal(t, want, api.Get(at)["metadata"].(map[string]any)["labels"])
	}
}

// TestAVolumeOfATenantsClaimStays though the claim says that it is the deployment's: a tenant may
// write to its claims, and not to volumes that outlast them.
func TestAVolumeOfATenantsClaimStays(t *testing.T) {
	api, client := shared(t)
	api.Set(t, "/api/v1/namespaces/team/persistentvolumeclaims/rows", "metadata: {name: rows, namespace: team, uid: team-rows, "+used+"}")
	const at = "/api/v1/persistentvolumes/team"
	api.Set(t, at, volume("team", "team", "rows", "team-rows", "2026-01-03T00:00:00Z"))
	_, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.NotNil(t, api.Get(at))
	untouched(t, api)
}
