package infrastructure_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/providers/local/steps"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/infrastructure"
	"github.com/slipway-sh/slipway/stages/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// deployment runs the steps against a real node.
type deployment struct {
	t     *testing.T
	reg   step.Registry
	state string
	in    stages.ClusterInput
}

func real(t *testing.T) *deployment {
	t.Helper()
	kubeconfig, bundle := os.Getenv("SLIPWAY_TEST_KUBECONFIG"), os.Getenv("SLIPWAY_TEST_BUNDLE")
	if kubeconfig == "" || bundle == "" {
		t.Skip("set SLIPWAY_TEST_KUBECONFIG to the access file of an empty local node, and SLIPWAY_TEST_BUNDLE to the bundle it was started with")
	}
	d := &deployment{t: t, state: t.TempDir()}
	infrastructure.Register(&d.reg)
	steps.Register(&d.reg)
	raw, err := os.ReadFile(kubeconfig)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(d.state, "secrets"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(d.state, "secrets", "kubeconfig"), raw, 0o600))
	c, err := kube.Connect(kubeconfig)
	require.NoError(t, err)
	d.in = stages.ClusterInput{
		Common:         stages.Common{Deployment: "it", Images: images(t, bundle)},
		Infrastructure: stages.Infrastructure{APIEndpoint: c.Endpoint(), StorageClass: "local-path"},
	}
	return d
}

// images reads the references out of a bundle's index.
func images(t *testing.T, bundle string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(bundle, "bundle.json"))
	require.NoError(t, err)
	var index struct {
		Images []struct{ Name, Ref, Digest string }
	}
	require.NoError(t, json.Unmarshal(raw, &index))
	out := map[string]string{}
	for _, i := range index.Images {
		out[i.Name] = "slipway.local/" + i.Name + "@" + i.Digest
	}
	return out
}

// run runs a step as its container does, and decodes its output into out.
func (d *deployment) run(stage, name, digest string, in, out any) stages.Result {
	d.t.Helper()
	input, err := json.Marshal(in)
	require.NoError(d.t, err)
	req, err := json.Marshal(stages.Request{Run: "it", Stage: stage, Step: name, Digest: digest, Timeout: stages.Duration(8 * 60e9), Input: input})
	require.NoError(d.t, err)
	dir := d.t.TempDir()
	request, result := filepath.Join(dir, "request.json"), filepath.Join(dir, "result.json")
	require.NoError(d.t, os.WriteFile(request, req, 0o600))
	var stdout, shown bytes.Buffer
	code := step.Main(d.t.Context(), &d.reg, []string{stage + "/" + name, "--request", request, "--result", result, "--state", d.state}, &stdout, &shown)
	raw, err := os.ReadFile(result)
	require.NoError(d.t, err)
	var res stages.Result
	require.NoError(d.t, json.Unmarshal(raw, &res))
	d.t.Logf("%s: %s in %s\n%s", name, res.Status, res.Finished.Sub(res.Started), shown.String())
	if res.Fault == nil {
		require.Zero(d.t, code)
		require.NoError(d.t, json.Unmarshal(res.Output, out))
	}
	return res
}

// TestRealNode takes a node from empty to verified, changes nothing the second
// time, and removes everything.
func TestRealNode(t *testing.T) {
	d := real(t)
	var cluster stages.Cluster
	require.Equal(t, stages.Succeeded, d.run("infrastructure", "cluster", "d", d.in, &cluster).Status)
	require.NotEmpty(t, cluster.Nodes)

	var addons stages.Addons
	require.Equal(t, stages.Succeeded, d.run("infrastructure", "local-addons", "d", d.in, &addons).Status)
	require.Equal(t, stages.Reused, d.run("infrastructure", "local-addons", "d", d.in, &addons).Status)
	require.Equal(t, stages.Succeeded, d.run("infrastructure", "local-addons", "", d.in, &addons).Status)
	require.Zero(t, addons.Changed, "the second time nothing changes")

	var storage stages.StorageCheck
	require.Equal(t, stages.Succeeded, d.run("infrastructure", "storage", "d", d.in, &storage).Status)
	require.Equal(t, stages.StorageCheck{Class: "local-path", Provisioner: "rancher.io/local-path"}, storage)
	require.Equal(t, stages.Reused, d.run("infrastructure", "storage", "d", d.in, &storage).Status)

	var balancer stages.LoadBalancerCheck
	require.Equal(t, stages.Succeeded, d.run("infrastructure", "loadbalancer", "d", d.in, &balancer).Status)
	require.Equal(t, stages.Reused, d.run("infrastructure", "loadbalancer", "d", d.in, &balancer).Status)

	var removed stages.Removed
	require.Equal(t, stages.Succeeded, d.run("infrastructure", "platform-remove", "", stages.RemoveInput{Common: d.in.Common}, &removed).Status)
	require.Contains(t, removed.Namespaces, "slipway-checks")
	require.Empty(t, removed.Stripped)
	var left stages.Inventory
	require.Equal(t, stages.Succeeded, d.run("infrastructure", "inventory", "", stages.InventoryInput{Common: d.in.Common, MustBeEmpty: true}, &left).Status)
	require.True(t, left.Empty())

	removed = stages.Removed{}
	require.Equal(t, stages.Succeeded, d.run("infrastructure", "platform-remove", "", stages.RemoveInput{Common: d.in.Common}, &removed).Status)
	require.Equal(t, stages.Removed{}, removed, "the second removal has nothing to do")
}
