package infrastructure_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/infrastructure"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// deployment runs the steps against a real node.
type deployment struct {
	t        *testing.T
	reg      step.Registry
	state    string
	endpoint string
	images   map[string]string
}

func real(t *testing.T) *deployment {
	t.Helper()
	kubeconfig, bundle := os.Getenv("SLIPWAY_TEST_KUBECONFIG"), os.Getenv("SLIPWAY_TEST_BUNDLE")
	if kubeconfig == "" || bundle == "" {
		t.Skip("set SLIPWAY_TEST_KUBECONFIG to the access file of an empty local node, and SLIPWAY_TEST_BUNDLE to the bundle it was started with")
	}
	d := &deployment{t: t, state: t.TempDir()}
	infrastructure.Register(&d.reg, nil)
	raw, err := os.ReadFile(kubeconfig)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(d.state, "secrets"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(d.state, "secrets", "kubeconfig"), raw, 0o600))
	c, err := kube.Connect(kubeconfig, nil)
	require.NoError(t, err)
	d.endpoint, d.images = c.Endpoint(), images(t, bundle)
	return d
}

// addons are those of the provider of the node.
func (d *deployment) addons() contract.AddonsInput {
	d.t.Helper()
	a, err := local.Provider{}.Addons()
	require.NoError(d.t, err)
	return contract.AddonsInput{Addons: a, Images: d.images}
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
func (d *deployment) run(stage, name, digest string, in, out any) contract.Result {
	d.t.Helper()
	input, err := json.Marshal(in)
	require.NoError(d.t, err)
	req, err := json.Marshal(contract.Request{Run: "it", Stage: stage, Step: name, Deployment: "it", Digests: journal.Digests{Input: digest, Release: "c", Tools: "t"}, Timeout: contract.Duration(8 * 60e9), Input: input})
	require.NoError(d.t, err)
	dir := d.t.TempDir()
	request, result := filepath.Join(dir, "request.json"), filepath.Join(dir, "result.json")
	require.NoError(d.t, os.WriteFile(request, req, 0o600))
	var stdout, shown bytes.Buffer
	code := step.Main(d.t.Context(), &d.reg, []string{stage + "/" + name, "--request", request, "--result", result, "--state", d.state}, &stdout, &shown)
	raw, err := os.ReadFile(result)
	require.NoError(d.t, err)
	var res contract.Result
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
	var cluster contract.Cluster
	require.Equal(t, contract.Succeeded, d.run("infrastructure", "cluster", "d", contract.ClusterInput{APIEndpoint: d.endpoint}, &cluster).Status)
	require.NotEmpty(t, cluster.Nodes)

	in := d.addons()
	var addons contract.Addons
	require.Equal(t, contract.Succeeded, d.run("infrastructure", "local-addons", "d", in, &addons).Status)
	require.Equal(t, contract.Reused, d.run("infrastructure", "local-addons", "d", in, &addons).Status)
	require.Equal(t, contract.Succeeded, d.run("infrastructure", "local-addons", "", in, &addons).Status)
	require.Zero(t, addons.Changed, "the second time nothing changes")

	volume := contract.StorageInput{StorageClass: "local-path", Image: d.images["busybox"]}
	var storage contract.StorageCheck
	require.Equal(t, contract.Succeeded, d.run("infrastructure", "storage", "d", volume, &storage).Status)
	require.Equal(t, contract.StorageCheck{Class: "local-path", Provisioner: "rancher.io/local-path"}, storage)
	require.Equal(t, contract.Reused, d.run("infrastructure", "storage", "d", volume, &storage).Status)

	web := contract.LoadBalancerInput{Image: d.images["busybox"]}
	var balancer contract.LoadBalancerCheck
	require.Equal(t, contract.Succeeded, d.run("infrastructure", "loadbalancer", "d", web, &balancer).Status)
	require.Equal(t, contract.Reused, d.run("infrastructure", "loadbalancer", "d", web, &balancer).Status)

	removed := d.removed()
	require.Contains(t, removed.Namespaces, "slipway-checks-it")
	require.Empty(t, removed.Stripped)
	var left contract.Inventory
	require.Equal(t, contract.Succeeded, d.run("infrastructure", "inventory", "", contract.InventoryInput{MustBeEmpty: true}, &left).Status)
	require.Empty(t, left.Objects)

	require.Equal(t, contract.Removed{}, d.removed(), "the second removal has nothing to do")
}

func TestUnreachableClusterIsSkippedOnlyWhenAsked(t *testing.T) {
	d := &deployment{t: t, state: t.TempDir()}
	infrastructure.Register(&d.reg, nil)
	var left contract.Inventory
	require.Equal(t, contract.Succeeded, d.run("infrastructure", "inventory", "", contract.InventoryInput{MustBeEmpty: true}, &left).Status)
	require.Contains(t, left.Unreachable, "no access file")
	var out contract.Removed
	require.Equal(t, contract.Succeeded, d.run("infrastructure", "platform-remove", "", contract.RemoveInput{}, &out).Status)
	require.Contains(t, out.Unreachable, "no access file")

	require.NoError(t, os.Mkdir(filepath.Join(d.state, "secrets"), 0o700))
	closed := `{"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	require.NoError(t, os.WriteFile(filepath.Join(d.state, "secrets", "kubeconfig"), []byte(closed), 0o600))
	left = contract.Inventory{}
	require.Equal(t, contract.Succeeded, d.run("infrastructure", "inventory", "", contract.InventoryInput{MustBeEmpty: true, SkipUnreachable: true}, &left).Status)
	require.Contains(t, left.Unreachable, "connection refused")
	left = contract.Inventory{}
	require.Equal(t, contract.Succeeded, d.run("infrastructure", "inventory", "", contract.InventoryInput{MustBeEmpty: true, Gone: true}, &left).Status)
	require.Equal(t, "the cluster was removed, with everything in it", left.Unreachable, "it was not asked")
}
