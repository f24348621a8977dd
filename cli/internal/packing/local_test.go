package packing

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
	providers "github.com/slipway-sh/slipway/providers/all"
)

// TestWhatAnUpgradeBeganFrom is unpacked beside what it led to, and made one of a local deployment.
func TestWhatAnUpgradeBeganFrom(t *testing.T) {
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	before := func(workflow, style string) func(*runpackage.Info, runpackage.Files) {
		return func(i *runpackage.Info, f runpackage.Files) {
			i.Workflow, i.Before = workflow, &runpackage.Before{Platform: i.Platform, Style: style}
			f["before/config.yaml"] = runpackage.File{Data: []byte("apiVersion: slipway.sh/v1\nprovider: existing\nexisting: {kubeconfig: \"file:x\"}\nglobal: {domain: then.test}\n")}
			f["before/release/platform.yaml"], f["before/release/run.sh"] = f["release/platform.yaml"], f["release/run.sh"]
		}
	}
	open := func(change func(*runpackage.Info, runpackage.Files)) (*Opened, *Source, error) {
		file := packed(t, change)
		o, err := Open(file, "", nil)
		require.NoError(t, err)
		from, err := o.Origin(file)
		return o, from, err
	}
	o, from, err := open(before("upgrade", "in-place"))
	require.NoError(t, err)
	require.DirExists(t, from.Release)
	for _, s := range []*Source{&o.Source, from} {
		_, err = s.Localise(providers.All().Sections())
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(o.Config, []byte("- a\n"), 0o600))
	_, err = o.Localise(providers.All().Sections())
	require.ErrorIs(t, err, &fault.Fault{Code: CodeIncomplete}, "it is the sender's fault")
	text, err := os.ReadFile(from.Config)
	require.NoError(t, err)
	require.Contains(t, string(text), "provider: local\n")
	require.Contains(t, string(text), "domain: then.test")
	require.NotEqual(t, o.Config, from.Config)

	_, from, err = open(before("install", ""))
	require.NoError(t, err)
	require.Nil(t, from, "it is no upgrade")
	_, from, err = open(func(i *runpackage.Info, _ runpackage.Files) { i.Workflow = "upgrade" })
	require.NoError(t, err)
	require.Nil(t, from, "it was not known any more")
	for says, change := range map[string]func(*runpackage.Info, runpackage.Files){
		`"at once" is no style of an upgrade`: before("upgrade", "at once"),
		"there is no configuration in it": func(i *runpackage.Info, _ runpackage.Files) {
			i.Workflow, i.Before = "upgrade", &runpackage.Before{Platform: i.Platform}
		},
	} {
		_, _, err = open(change)
		require.ErrorIs(t, err, &fault.Fault{Code: CodeIncomplete})
		require.ErrorContains(t, err, says)
	}
}

func TestWhatALocalDeploymentSubstitutes(t *testing.T) {
	text, substituted, err := localise([]byte(`apiVersion: slipway.sh/v1
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
	text, substituted, err = localise([]byte("apiVersion: slipway.sh/v1\nlocal: {bind: 192.0.2.1, apiPort: 6500}\n"), providers.All().Sections())
	require.NoError(t, err)
	require.Equal(t, []string{"the address 192.0.2.1, on which the cluster is published, by 127.0.0.1"}, substituted, "it is that of another machine")
	require.NotContains(t, string(text), "bind")
	_, substituted, err = localise([]byte("apiVersion: slipway.sh/v1\nprovider: \"x\\nforged\"\nlocal: {bind: \"y\\nforged\"}\n"), providers.All().Sections())
	require.NoError(t, err)
	require.Equal(t, []string{"provider x forged by local, a Kubernetes that Slipway runs itself", "the address y forged, on which the cluster is published, by 127.0.0.1"}, substituted)
	for _, same := range []string{"apiVersion: slipway.sh/v1\nprovider: local\nlocal: {apiPort: 6500}\n", "apiVersion: slipway.sh/v1\nlocal: {apiPort: 6500}\n"} {
		text, substituted, err = localise([]byte(same), providers.All().Sections())
		require.NoError(t, err)
		require.Empty(t, substituted)
		require.Contains(t, string(text), "apiPort: 6500")
	}
}
