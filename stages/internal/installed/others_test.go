package installed

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestANamespaceThatOthersMakeAgainIsTheirs, with the claims and volumes in it.
func TestANamespaceThatOthersMakeAgainIsTheirs(t *testing.T) {
	for _, claims := range []string{"delete", "keep"} {
		api, client := shared(t)
		api.Set(t, "/api/v1/namespaces/shop", "metadata: {uid: ours}")
		api.Set(t, "/api/v1/namespaces/slipway-system", "metadata: {uid: ours}")
		r := found(t, client)
		if claims == "keep" {
			r.kept = []string{"shop"}
		}
		for _, name := range []string{"shop", "slipway-system"} {
			api.Delete("/api/v1/namespaces/" + name)
			api.Set(t, "/api/v1/namespaces/"+name, "metadata: {name: "+name+", uid: theirs}")
		}
		api.Set(t, "/api/v1/namespaces/shop/persistentvolumeclaims/rows", "metadata: {uid: theirs}")
		api.Set(t, "/api/v1/persistentvolumes/theirs", volume("theirs", "shop", "rows", "theirs", "2026-02-03T00:00:00Z"))
		for _, part := range []func(context.Context) error{r.namespaces, r.objects, r.volumes, r.systemNamespace} {
			require.NoError(t, part(t.Context()))
		}
		require.NotNil(t, api.Get("/api/v1/namespaces/shop"))
		require.NotNil(t, api.Get("/api/v1/namespaces/slipway-system"))
		require.NotNil(t, api.Get("/api/v1/namespaces/shop/persistentvolumeclaims/rows"))
		require.NotNil(t, api.Get("/api/v1/namespaces/shop/configmaps/by-hand"))
		require.NotNil(t, api.Get("/api/v1/persistentvolumes/theirs"))
		require.Nil(t, api.Get("/api/v1/persistentvolumes/rows"), "its claim is gone")
	}
}

// TestACopyOfWhatIsOursStays: of a manifest that somebody read from the cluster, and of a
// namespace out of a backup. Both have all labels.
func TestACopyOfWhatIsOursStays(t *testing.T) {
	copied := func(text string) string {
		return strings.ReplaceAll(text, written, ", managedFields: [{manager: velero-server}]")
	}
	copies := map[string]string{
		"/api/v1/namespaces/restored":                                  "metadata: {name: restored, " + copied(byUs) + "}",
		"/api/v1/namespaces/restored/persistentvolumeclaims/rows":      "metadata: {name: rows, namespace: restored, uid: copy, " + copied(byUs) + "}",
		"/api/v1/persistentvolumes/copy":                               volume("copy", "restored", "rows", "copy", "2026-03-03T00:00:00Z"),
		"/apis/apps/v1/namespaces/team/statefulsets/cache":             "{metadata: {name: cache, namespace: team, " + copied(used) + "}, spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}",
		"/api/v1/namespaces/team/persistentvolumeclaims/data-cache-0":  "metadata: {name: data-cache-0, namespace: team, uid: team-1}",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/copy":         "metadata: {name: copy, " + copied(used) + "}",
		"/api/v1/namespaces/team/configmaps/of-argocd":                 "metadata: {name: of-argocd, namespace: team, annotations: {argocd.argoproj.io/tracking-id: 'web:/ConfigMap:shop/of-argocd'}, " + copied(used) + "}",
		"/apis/discovery.k8s.io/v1/namespaces/team/endpointslices/web": "metadata: {name: web, namespace: team, ownerReferences: [{kind: Service, name: web, uid: w}], " + copied(used) + "}",
	}
	api, client := shared(t)
	before := map[string]map[string]any{}
	for path, text := range copies {
		api.Set(t, path, text)
		before[path] = api.Get(path)
	}
	api.Set(t, "/api/v1/namespaces/team/configmaps/ours", "metadata: {name: ours, namespace: team, annotations: {argocd.argoproj.io/tracking-id: 'web:/ConfigMap:team/ours'}, "+copied(used)+"}")
	left, err := remover(client).Inventory(t.Context(), false)
	require.NoError(t, err)
	require.Subset(t, left.Names, []string{"Namespace shop", "Namespace slipway-system", "PersistentVolumeClaim shop/rows"})

	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	const why = " (a copy: Slipway has not written to it)"
	require.ElementsMatch(t, []string{
		"Namespace restored" + why, "PersistentVolumeClaim restored/rows" + why, "StatefulSet team/cache" + why,
		"ConfigMap team/of-argocd" + why, "ClusterRole copy" + why,
	}, out.Kept)
	for path := range copies {
		require.Equal(t, before[path], api.Get(path), path)
	}
	require.Nil(t, api.Get("/api/v1/namespaces/team/configmaps/ours"), "Argo CD made it there")
	untouched(t, api)
	empty(t, client)
}

// TestAVolumeIsWhoseItsClaimIs, also with a label that says otherwise.
func TestAVolumeIsWhoseItsClaimIs(t *testing.T) {
	api, client := shared(t)
	api.Set(t, "/api/v1/namespaces/team/persistentvolumeclaims/theirs", "metadata: {name: theirs, namespace: team, uid: t-1}")
	api.Set(t, "/api/v1/persistentvolumes/reused", volume("reused", "team", "theirs", "t-1", "2026-01-03T00:00:00Z"))
	api.Set(t, "/api/v1/persistentvolumes/reused", "metadata: {"+used+"}")
	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.NotContains(t, out.Volumes, "reused")
	require.NotNil(t, api.Get("/api/v1/persistentvolumes/reused"))
	empty(t, client)
}

// TestWhatStaysOutlastsWhatMadeIt: the cascade of Argo CD, a component's removal and the
// garbage collector would take it.
func TestWhatStaysOutlastsWhatMadeIt(t *testing.T) {
	const rows, password = "/api/v1/namespaces/shop/persistentvolumeclaims/rows", "/api/v1/namespaces/shop/secrets/password"
	api, client := shared(t)
	api.Set(t, rows, "metadata: {ownerReferences: [{kind: Cluster, name: rows, uid: c}], annotations: {argocd.argoproj.io/sync-options: 'Prune=false'}}")
	api.Set(t, password, "metadata: {managedFields: null}")
	objs, err := kube.Decode([]byte("{apiVersion: v1, kind: Secret, metadata: {name: password, namespace: shop, labels: {" + kube.DeploymentLabel + ": demo}}}\n---\n" +
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop, labels: {" + kube.DeploymentLabel + ": demo}}}"))
	require.NoError(t, err)
	_, _, err = client.ApplySet(t.Context(), kube.Set{Name: "web-objects", Deployment: "demo"}, objs, kube.ApplyOptions{})
	require.NoError(t, err)
	record(t, client, func(rec *Removal) {
		rec.Remove.Claims = "keep"
		rec.Components = []Component{{Name: "web"}}
	})
	r := found(t, client)
	require.NotNil(t, api.Get(rows)["metadata"].(map[string]any)["ownerReferences"], "they go")
	r.Rules.Claims = "keep"
	require.NoError(t, r.findNamespaces(t.Context()))
	require.NoError(t, r.mark(t.Context()))
	for path, options := range map[string]string{rows: "Prune=false,Delete=false", password: "Delete=false"} {
		meta := api.Get(path)["metadata"].(map[string]any)
		require.Nil(t, meta["ownerReferences"])
		require.Equal(t, map[string]any{"argocd.argoproj.io/sync-options": options}, meta["annotations"])
	}
	require.NoError(t, r.mark(t.Context()), "again it changes nothing")
	require.Equal(t, "Prune=false,Delete=false", api.Get(rows)["metadata"].(map[string]any)["annotations"].(map[string]any)["argocd.argoproj.io/sync-options"])

	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"web"}, out.Components)
	require.NotContains(t, api.Writes(), "DELETE "+password)
	require.NotNil(t, api.Get(password))
	require.Nil(t, api.Get("/api/v1/namespaces/shop/configmaps/web"))
	require.Nil(t, api.Get("/api/v1/namespaces/kube-system/persistentvolumeclaims/data-cached-0")["metadata"].(map[string]any)["annotations"], "it is not ours")
	untouched(t, api)
	empty(t, client)
}
