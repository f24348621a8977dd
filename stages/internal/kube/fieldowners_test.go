package kube_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// TestWhatIsYielded is what Slipway owns, and only where somebody else applies the object.
func TestWhatIsYielded(t *testing.T) {
	const at = "/api/v1/namespaces/shop/configmaps/"
	api := kubetest.Serve(t)
	client, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	objs, err := kube.Decode([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: ours, namespace: shop}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: shop}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: gone, namespace: shop}}\n"))
	require.NoError(t, err)
	const own = "{manager: slipway, operation: Update}, {manager: slipway, operation: Update, subresource: status}, {manager: scaler, operation: Update}"
	api.Set(t, at+"ours", "{data: {a: b}, metadata: {name: ours, namespace: shop, managedFields: ["+own+"]}}")
	api.Set(t, at+"theirs", "{data: {a: b}, metadata: {name: theirs, namespace: shop, managedFields: ["+own+", {manager: argocd-controller, operation: Apply}]}}")
	require.NoError(t, planned(t, client, plan.Verify("web")).Yield(t.Context(), objs))
	require.Empty(t, api.Writes())

	for range 2 {
		require.NoError(t, client.Yield(t.Context(), objs))
		require.Equal(t, []string{"PATCH " + at + "theirs"}, api.Writes())
	}
	o := api.Get(at + "theirs")
	require.Equal(t, map[string]any{"a": "b"}, o["data"])
	var left []string
	for _, f := range o["metadata"].(map[string]any)["managedFields"].([]any) {
		left = append(left, f.(map[string]any)["manager"].(string))
	}
	require.Equal(t, []string{"slipway", "scaler", "argocd-controller"}, left, "the status stays with who has it")
}
