package conductor

import (
	"context"
	"errors"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/existing"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// there is a conductor for an existing cluster, and how often its access was
// looked for.
func there(t *testing.T, answers map[string]any, missing error) (*Conductor, *engine, *int) {
	t.Helper()
	e, asked := &engine{answers: answers}, 0
	client, err := dagger.Connect(t.Context(), dagger.WithConn(e))
	require.NoError(t, err)
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nprovider: existing\nexisting: {kubeconfig: env:K, context: c}\n"), config.Options{Providers: []string{"existing"}})
	require.NoError(t, err)
	c, err := New(Options{
		Client: client, Config: cfg, Provider: existing.Provider{}, Images: &containers.Images{Toolchain: client.Container(), Node: client.Container()},
		Access: func(_ context.Context, a providers.ExternalCluster) (*dagger.Secret, error) {
			require.Equal(t, providers.ExternalCluster{Kubeconfig: "env:K", Context: "c"}, a)
			asked++
			return client.SetSecret("access", "the access"), missing
		},
	})
	require.NoError(t, err)
	return c, e, &asked
}

func TestStepsGetTheAccessToAClusterThatIsThere(t *testing.T) {
	c, _, asked := there(t, nil, nil)
	mounted := func(s contract.Spec) bool {
		var e containers.Exec
		require.NoError(t, c.runner("r1", nil).mount(t.Context(), &e, s))
		require.Nil(t, e.Cluster)
		return e.Secrets[contract.AccessFile] != nil
	}
	require.False(t, mounted(contract.TerraformStep().Spec), "it works without the cluster")
	require.Zero(t, *asked)
	for _, s := range []contract.Spec{
		contract.ClusterPreflightStep().Spec, contract.ClusterStep().Spec, contract.StatusStep().Spec, contract.DiagnosisStep().Spec,
		contract.PlatformRemoveStep().Spec, contract.CRDsRemoveStep().Spec, contract.CheckEarlierSpec(),
	} {
		require.True(t, mounted(s), s)
	}
	require.Equal(t, 1, *asked, "it is looked for once")

	own, _ := conducted(t, nil)
	var e containers.Exec
	require.NoError(t, own.runner("r1", nil).mount(t.Context(), &e, contract.ClusterStep().Spec))
	require.Empty(t, e.Secrets)
}

// TestStepsGetTheAccountOfTheRegistry: on a cluster that is there, those whose pods need it.
func TestStepsGetTheAccountOfTheRegistry(t *testing.T) {
	c, _, _ := there(t, nil, nil)
	opts := c.opts
	opts.Images.PullSecret, opts.Images.PullSecretDigest = opts.Client.SetSecret("account", "x"), "pbkdf2:1"
	c, err := New(opts)
	require.NoError(t, err)
	require.Equal(t, "pbkdf2:1", c.inputs.Environment.Account)
	mounted := func(s contract.Spec) bool {
		var e containers.Exec
		require.NoError(t, c.runner("r1", nil).mount(t.Context(), &e, s))
		return e.Secrets[contract.RegistryAuthFile] != nil
	}
	for _, s := range []contract.Spec{contract.NamespacesStep().Spec, contract.StorageStep().Spec, contract.LoadBalancerStep().Spec, contract.CheckEarlierSpec()} {
		require.True(t, mounted(s), s)
	}
	require.False(t, mounted(contract.ComponentStep().Spec), "what has the name of the Secret only")

	own, _ := conducted(t, nil)
	opts = own.opts
	opts.Images.PullSecret, opts.Images.PullSecretDigest = opts.Client.SetSecret("account", "x"), "pbkdf2:1"
	own, err = New(opts)
	require.NoError(t, err)
	require.Empty(t, own.inputs.Environment.Account, "the node has it")
	var e containers.Exec
	require.NoError(t, own.runner("r1", nil).mount(t.Context(), &e, contract.NamespacesStep().Spec))
	require.Nil(t, e.Secrets[contract.RegistryAuthFile])
}

// Nothing starts without the access, and what needs no cluster needs no access.
func TestWithoutAccessToAClusterThatIsThere(t *testing.T) {
	missing := errors.New("it is not where the configuration says")
	c, e, asked := there(t, map[string]any{"file(": `{"cluster":true}`}, missing)
	for _, removes := range []bool{false, true} {
		record, err := c.Conduct(t.Context(), stages.Workflow{Name: config.Install, Removes: removes})
		require.ErrorIs(t, err, missing)
		require.Nil(t, record)
	}
	require.Empty(t, e.all(), "nothing was started")
	require.Equal(t, 2, *asked)
	_, err := c.ClusterID(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: codeNoCluster})
	_, err = c.stored(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, *asked)
	_, err = c.toolchain(t.Context())
	require.ErrorIs(t, err, missing)
}

func TestTheToolchainReachesAClusterThatIsThere(t *testing.T) {
	c, e, _ := there(t, map[string]any{"file(": `{"cluster":true}`, "plaintext": "the access"}, nil)
	ctr, err := c.toolchain(t.Context())
	require.NoError(t, err)
	_, err = ctr.ID(t.Context())
	require.NoError(t, err)
	require.Contains(t, e.all(), contract.AccessFile)
	require.NotContains(t, e.all(), contract.KubeconfigFile)
	_, err = c.ToolchainID(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: codeNoToolchain})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	text, err := c.Kubeconfig(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, "the access", text)
}

// An existing cluster may have what no state knows of.
func TestNothingIsLeftOfADeploymentThatIsNotKnown(t *testing.T) {
	removal := stages.Workflow{Name: config.Destroy, Removes: true}
	for plan, want := range map[string]bool{
		`{}`: true,
		`{"changes":[{"of":"objects","action":"remove"}]}`: false,
		`{"unknown":[{"what":"the cluster"}]}`:             false,
		`{"refused":[{"what":"the cluster"}]}`:             false,
	} {
		c, _, _ := there(t, map[string]any{"file(": plan}, nil)
		c.opts.Images.Manifests = c.opts.Client.Directory()
		got, err := c.Nothing(t.Context(), removal)
		require.NoError(t, err)
		require.Equal(t, want, got, plan)
	}
	missing := errors.New("it is not where the configuration says")
	c, _, _ := there(t, nil, missing)
	_, err := c.Nothing(t.Context(), removal)
	require.ErrorIs(t, err, missing)

	own, e := conducted(t, nil)
	got, err := own.Nothing(t.Context(), removal)
	require.NoError(t, err)
	require.True(t, got)
	require.Empty(t, e.all(), "its state knows of a cluster of Slipway's own")
}
