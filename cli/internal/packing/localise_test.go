package packing

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/runpackage"
	providers "github.com/slipway-sh/slipway/providers/all"
)

// TestAnUpgradeIsRunAgainFromWhatItBeganFrom: with the release and the configuration from then,
// where the package has them.
func TestAnUpgradeIsRunAgainFromWhatItBeganFrom(t *testing.T) {
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	upgrade := func(i *runpackage.Info, _ runpackage.Files) { i.Workflow = "upgrade" }
	o, err := Open(t.Context(), packed(t, upgrade), "")
	require.NoError(t, err)
	substituted, err := o.Localise(providers.All().Sections())
	require.NoError(t, err)
	require.Equal(t, []string{"the upgrade of what was installed before by an install on an empty cluster"}, substituted)
	require.Empty(t, o.Began)

	o, err = Open(t.Context(), packed(t, func(i *runpackage.Info, f runpackage.Files) {
		upgrade(i, f)
		i.Before = &runpackage.Before{Platform: i.Platform, Style: "in-place"}
		i.Before.Version = "0.9.0"
		f["before/answers.yaml"] = runpackage.File{Data: []byte("apiVersion: slipway.sh/v1\nprovider: existing\nexisting: {kubeconfig: \"file:x\"}\nglobal: {domain: then.test}\n")}
		f["before/release/platform.yaml"] = f["release/platform.yaml"]
	}), "")
	require.NoError(t, err)
	substituted, err = o.Localise(providers.All().Sections())
	require.NoError(t, err)
	require.Equal(t, []string{"the data of the deployment by that of a fresh install of release 0.9.0"}, substituted)
	text, err := os.ReadFile(o.Began.Config)
	require.NoError(t, err)
	require.Contains(t, string(text), "provider: local\n")
	require.Contains(t, string(text), "domain: then.test")
	require.DirExists(t, o.Began.Release)
	require.NotEqual(t, o.Config, o.Began.Config)

	_, err = Open(t.Context(), packed(t, func(i *runpackage.Info, _ runpackage.Files) { i.Before = &runpackage.Before{Platform: i.Platform} }), "")
	require.ErrorContains(t, err, "there is no configuration in it")
}

func TestWhatALocalDeploymentSubstitutes(t *testing.T) {
	text, substituted, err := localised([]byte(`apiVersion: slipway.sh/v1
provider: existing
existing: {kubeconfig: "file:~/.kube/config", registry: "registry.internal:5000/slipway"}
global: {name: shop}
state: {url: "s3://bucket?region=eu-central-1"}
`), providers.All().Sections())
	require.NoError(t, err)
	require.Equal(t, []string{
		"provider existing by local, a Kubernetes that Slipway runs itself",
		"the bucket with the deployment's state by a volume of the engine",
	}, substituted)
	require.Contains(t, string(text), "provider: local\n")
	require.Contains(t, string(text), "name: shop")
	for _, gone := range []string{"existing", "s3://"} {
		require.NotContains(t, string(text), gone)
	}
	same := "apiVersion: slipway.sh/v1\nprovider: local\nlocal: {apiPort: 6500}\n"
	text, substituted, err = localised([]byte(same), providers.All().Sections())
	require.NoError(t, err)
	require.Empty(t, substituted)
	require.Contains(t, string(text), "apiPort: 6500")
}
