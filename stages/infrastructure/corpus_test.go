package infrastructure

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
)

// TestTheBrokenReleaseWhoseObjectIsSomebodyElses is the one of the CLI's broken releases that
// only a cluster can tell of.
func TestTheBrokenReleaseWhoseObjectIsSomebodyElses(t *testing.T) {
	api := kubetest.Serve(t)
	env := reaching(t, api.URL)
	env.PlatformDir = "../../cli/testdata/broken/somebody-elses"
	require.FileExists(t, env.PlatformDir+"/platform.yaml")
	in := contract.OwnershipInput{Components: []contract.ComponentInput{{Component: "web"}}}
	_, err := finder{}.ownership(t.Context(), env, in)
	require.NoError(t, err)

	api.Set(t, "/api/v1/namespaces/shop/configmaps/pages", "metadata: {name: pages, namespace: shop}")
	_, err = finder{}.ownership(t.Context(), env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
	require.ErrorContains(t, err, "ConfigMap shop/pages (without an owner)")
	require.Empty(t, api.Writes())
}
