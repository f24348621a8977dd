package infrastructure

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestALabelMakesNoNamespaceTheDeployments in a cluster of others: who may make namespaces can
// make one before the first install, or before the upgrade that has it.
func TestALabelMakesNoNamespaceTheDeployments(t *testing.T) {
	const (
		shop, forged = "/api/v1/namespaces/shop", "metadata: {name: shop, " + byUs + "}"
		why          = "Namespace shop (with this deployment's label, and in none of its lists)"
	)
	api, env, in := wanting(t)
	env.Existing = true
	api.Set(t, "/api/v1/namespaces/slipway-checks-demo", "metadata: {name: slipway-checks-demo, "+byUs+"}") // of an install that ended early
	own := func() error {
		_, err := finder{}.ownership(t.Context(), env, in)
		return err
	}
	refused := func() {
		t.Helper()
		err := own()
		require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
		require.ErrorContains(t, err, why)
		require.NotContains(t, err.Error(), "slipway-checks-demo")
	}
	require.NoError(t, own())
	api.Set(t, shop, forged)
	refused()
	before := api.Get(shop)

	api.Set(t, "/api/v1/namespaces/slipway-system", "metadata: {name: slipway-system, "+byUs+"}")
	require.NoError(t, own(), "of an install that was killed before it had a list")
	c, err := kube.Connect(env.Kubeconfig, nil)
	require.NoError(t, err)
	list := func(names ...string) {
		t.Helper()
		var all []kube.Member
		for _, name := range names {
			all = append(all, kube.Member{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Name: name})
		}
		require.NoError(t, c.KeepMembers(t.Context(), "demo", "slipway-prerequisites", all))
	}
	list("former")
	refused()
	list("former", "shop")
	require.NoError(t, own())

	list("former")
	in.TakeOwnership = true
	require.NoError(t, own())
	require.Equal(t, before["metadata"].(map[string]any)["labels"], api.Get(shop)["metadata"].(map[string]any)["labels"], "it stays what an earlier destroy has kept")
	env.Existing, in.TakeOwnership = false, false
	require.NoError(t, own(), "nobody else was in a cluster that Slipway has made")
}
