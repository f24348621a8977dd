package removal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
)

// TestWhatSaysThatItIsKeptOutlastsItsComponent: of a chart and of manifests, and nothing waits for it.
func TestWhatSaysThatItIsKeptOutlastsItsComponent(t *testing.T) {
	const keep = "annotations: {helm.sh/resource-policy: keep}"
	api, r := on(t)
	manifest := "{apiVersion: v1, kind: ConfigMap, metadata: {name: goes}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, " + keep + "}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: since}}\n"
	for name, more := range map[string]string{"goes": "", "kept": ", " + keep, "since": ", " + keep} {
		api.Set(t, "/api/v1/namespaces/kube-system/configmaps/"+name, "metadata: {name: "+name+", "+label+more+"}")
	}
	installed(t, r, "kube-system", "queue", map[string]string{kube.DeploymentLabel: "demo"}, manifest)
	deleted, err := r.Component(t.Context(), removal.Component{Name: "queue", Namespace: "kube-system"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"ConfigMap kube-system/goes"}, deleted)

	apply(t, r, "web", "goes", "kept")
	api.Set(t, "/api/v1/namespaces/shop/configmaps/kept", "metadata: {"+keep+"}")
	deleted, err = r.Component(t.Context(), removal.Component{Name: "web", Namespace: "shop"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"ConfigMap shop/goes"}, deleted)

	for name, stays := range map[string]bool{"kube-system/configmaps/goes": false, "kube-system/configmaps/kept": true, "kube-system/configmaps/since": true, "shop/configmaps/goes": false, "shop/configmaps/kept": true} {
		require.Equal(t, stays, api.Get("/api/v1/namespaces/"+name) != nil, name)
	}
}
