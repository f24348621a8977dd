package installed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/installed"
)

// TestWhatSaysThatItIsKeptOutlastsItsComponent, and nothing waits for it.
func TestWhatSaysThatItIsKeptOutlastsItsComponent(t *testing.T) {
	const keep = "annotations: {helm.sh/resource-policy: keep}"
	api, r := on(t)
	apply(t, r, "web", "goes", "kept")
	api.Set(t, "/api/v1/namespaces/shop/configmaps/kept", "metadata: {"+keep+"}")
	deleted, err := r.Component(t.Context(), installed.Component{Name: "web"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"ConfigMap shop/goes"}, deleted)

	for name, stays := range map[string]bool{"shop/configmaps/goes": false, "shop/configmaps/kept": true} {
		require.Equal(t, stays, api.Get("/api/v1/namespaces/"+name) != nil, name)
	}
}
