package packing

import (
	"testing"

	"github.com/stretchr/testify/require"

	providers "github.com/slipway-sh/slipway/providers/all"
)

func TestWhatALocalDeploymentSubstitutes(t *testing.T) {
	text, substituted, err := localised([]byte(`apiVersion: slipway.sh/v1
provider: existing
existing: {kubeconfig: "file:~/.kube/config", registry: "registry.internal:5000/slipway"}
global: {name: shop}
state: {url: "s3://bucket?region=eu-central-1"}
`), providers.All().Sections(), "upgrade")
	require.NoError(t, err)
	require.Equal(t, []string{
		"provider existing by local, a Kubernetes that Slipway runs itself",
		"the bucket with the deployment's state by a volume of the engine",
		"the upgrade of what was installed before by an install on an empty cluster",
	}, substituted)
	require.Contains(t, string(text), "provider: local\n")
	require.Contains(t, string(text), "name: shop")
	for _, gone := range []string{"existing", "s3://"} {
		require.NotContains(t, string(text), gone)
	}
	same := "apiVersion: slipway.sh/v1\nprovider: local\nlocal: {apiPort: 6500}\n"
	text, substituted, err = localised([]byte(same), providers.All().Sections(), "install")
	require.NoError(t, err)
	require.Empty(t, substituted)
	require.Contains(t, string(text), "apiPort: 6500")
}
