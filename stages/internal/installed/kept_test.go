package installed

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestWhatSaysThatItStaysOutlastsTheDestroy, and so does its namespace, with nothing else in it.
func TestWhatSaysThatItStaysOutlastsTheDestroy(t *testing.T) {
	const shop = "/api/v1/namespaces/shop"
	const keeps = ", annotations: {helm.sh/resource-policy: keep}, labels: {" + kube.DeploymentLabel + ": demo}"
	api, client := shared(t)
	record(t, client, func(rec *Removal) { rec.Remove.Claims = "delete" })
	api.Set(t, shop+"/configmaps/kept", "metadata: {name: kept, namespace: shop"+keeps+written+"}")
	api.Set(t, shop+"/persistentvolumeclaims/rows", "metadata: {name: rows, namespace: shop, uid: rows-1"+keeps+written+"}")
	api.Set(t, shop+"/configmaps/copy", "metadata: {name: copy, namespace: shop"+keeps+"}")

	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.NotNil(t, api.Get(shop))
	require.NotNil(t, api.Get(shop+"/configmaps/kept"))
	require.NotNil(t, api.Get(shop+"/persistentvolumeclaims/rows"))
	require.NotNil(t, api.Get("/api/v1/persistentvolumes/rows"), "which the claim is bound to")
	require.Nil(t, api.Get(shop+"/configmaps/by-hand"))
	require.Nil(t, api.Get(shop+"/secrets/password"))
	require.Subset(t, out.Kept, []string{"ConfigMap shop/kept", "PersistentVolumeClaim shop/rows", "Namespace shop"})
	require.NotContains(t, out.Namespaces, "shop")
	untouched(t, api)

	again, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.Empty(t, again.Namespaces)
	require.NotNil(t, api.Get(shop+"/configmaps/kept"), "a second destroy keeps it, too")
}

// TestTheAccountOfTheRegistryIsTakenOut, also of a namespace whose claims and Secrets stay.
func TestTheAccountOfTheRegistryIsTakenOut(t *testing.T) {
	r := &deployment{Remover: &Remover{Deployment: "demo", Rules: platform.Remove{Claims: platform.RemoveKeep}}}
	for name, stays := range map[string]bool{"database": true, kube.PullSecret: false} {
		o := unstructured.Unstructured{Object: map[string]any{"kind": "Secret"}}
		o.SetName(name)
		o.SetNamespace("shop")
		o.SetLabels(kube.Labels("demo"))
		require.Equal(t, stays, r.stays(o, map[string]bool{"shop": true}), name)
	}
}
