package conductor

import (
	"encoding/json"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages/contract"
)

// conductor is one that can wire but not run: it has no engine.
func conductor(provider providers.Provider) *Conductor {
	c := &Conductor{opts: Options{
		Config: config.Default(), Provider: provider, Images: &containers.Images{},
		Release: &platform.Release{Version: "1.0.0", Components: []platform.Component{
			{Name: "web", Kind: platform.App, Enabled: true}, {Name: "database", Kind: platform.App, Enabled: true},
		}},
	}}
	if _, ok := provider.(providers.ClusterServer); ok {
		c.cluster = &containers.Cluster{}
	}
	return c
}

// elsewhere is a provider whose cluster Slipway does not run.
type elsewhere struct{ providers.Provider }

// needs is what each step of a graph waits for.
func needs(p *pipeline.Pipeline) map[string][]string {
	out := map[string][]string{}
	for _, n := range p.Graph() {
		out[n.String()] = []string{}
		for _, k := range n.Needs {
			out[n.String()] = append(out[n.String()], k.String())
		}
	}
	return out
}

func TestTheGraphOfAnInstall(t *testing.T) {
	var p pipeline.Pipeline
	_, err := conductor(local.Provider{}).install(&p)
	require.NoError(t, err)
	require.Equal(t, map[string][]string{
		"infrastructure/preflight":         {},
		"infrastructure/node":              {"infrastructure/preflight"},
		"infrastructure/verify":            {"infrastructure/preflight", "infrastructure/node"},
		"infrastructure/terraform":         {"infrastructure/verify"},
		"infrastructure/cluster":           {"infrastructure/terraform"},
		"infrastructure/local-addons":      {"infrastructure/cluster"},
		"infrastructure/storage":           {"infrastructure/cluster", "infrastructure/local-addons"},
		"infrastructure/loadbalancer":      {"infrastructure/cluster", "infrastructure/local-addons"},
		"preorchestrator/namespaces":       {"infrastructure/cluster"},
		"preorchestrator/secrets":          {"preorchestrator/namespaces"},
		"preorchestrator/tls":              {"preorchestrator/namespaces"},
		"preorchestrator/gitea":            {"infrastructure/cluster", "infrastructure/local-addons", "preorchestrator/secrets", "preorchestrator/tls"},
		"preorchestrator/argocd":           {"infrastructure/cluster", "infrastructure/local-addons", "preorchestrator/secrets", "preorchestrator/tls"},
		"preorchestrator/gitea-push":       {"preorchestrator/gitea"},
		"preorchestrator/argocd-reconcile": {"preorchestrator/gitea-push", "preorchestrator/argocd"},
		"orchestrator/publish":             {"preorchestrator/gitea"},
		"orchestrator/sync":                {"orchestrator/publish", "preorchestrator/argocd-reconcile", "infrastructure/storage", "infrastructure/loadbalancer"},
		"postorchestrator/access":          {"orchestrator/sync"},
	}, needs(&p))
}

func TestTheGraphOfARemoval(t *testing.T) {
	var own pipeline.Pipeline
	require.NoError(t, conductor(local.Provider{}).destroy(&own))
	require.Equal(t, map[string][]string{
		"infrastructure/node-remove":       {},
		"infrastructure/terraform-destroy": {"infrastructure/node-remove"},
		"infrastructure/inventory":         {"infrastructure/terraform-destroy"},
	}, needs(&own))

	var other pipeline.Pipeline
	require.NoError(t, conductor(elsewhere{local.Provider{}}).destroy(&other))
	require.Equal(t, map[string][]string{
		"infrastructure/platform-remove":    {},
		"infrastructure/platform-inventory": {"infrastructure/platform-remove"},
		"infrastructure/terraform-destroy":  {"infrastructure/platform-inventory"},
		"infrastructure/inventory":          {"infrastructure/terraform-destroy"},
	}, needs(&other))
}

func TestEachAppHasItsDeadlineWithinTheStep(t *testing.T) {
	c := conductor(local.Provider{})
	require.Equal(t, 20*time.Minute, c.syncTimeout(2), "the step's own is longer")
	require.Equal(t, 50*time.Minute, c.syncTimeout(9))
}

func TestWhatAStepLeftIsRead(t *testing.T) {
	var out contract.Publication
	read := func(result string) (contract.Status, error) {
		r, err := decodeResult("orchestrator/publish", containers.Outcome{ExitCode: 4, Result: []byte(result), Stderr: "first\nlast\n"})
		if err != nil {
			return "", err
		}
		return r.Status, r.Decode("orchestrator/publish", &out)
	}
	status, err := read(`{"status":"reused","output":{"revision":"abc"}}`)
	require.NoError(t, err)
	require.Equal(t, contract.Reused, status)
	require.Equal(t, "abc", out.Revision)

	_, err = read(`{"status":"failed","fault":{"code":"ORC-002","class":4,"op":"push","fix":"look","message":"refused"}}`)
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Equal(t, &fault.Fault{Code: "ORC-002", Class: fault.Step, Op: "push", Fix: "look", Err: errors.New("refused")}, f)

	_, err = read(`{"status":`)
	require.ErrorContains(t, err, "decode the result of orchestrator/publish")

	_, err = decodeResult("orchestrator/publish", containers.Outcome{ExitCode: 137, Stderr: "first\nlast\n"})
	require.ErrorIs(t, err, &fault.Fault{Code: codeNoResult})
	require.ErrorContains(t, err, "exit status 137 without a result: last")
}

func TestAnAddressDoesNotMakeAnEarlierResultInvalid(t *testing.T) {
	for _, of := range []func(contract.GitServer) contract.Volatile{
		func(g contract.GitServer) contract.Volatile { return contract.GiteaPushInput{Gitea: g} },
		func(g contract.GitServer) contract.Volatile {
			return contract.PublishInput{Gitea: contract.Gitea{GitServer: g}}
		},
	} {
		lasting := func(address string) string {
			b, err := json.Marshal(of(contract.GitServer{URL: "https://gitea.example.org", Address: address}).Lasting())
			require.NoError(t, err)
			return string(b)
		}
		require.Equal(t, lasting("10.0.0.1:443"), lasting("10.0.0.2:443"))
		require.Contains(t, lasting("10.0.0.1:443"), "gitea.example.org")
	}
}

func TestAnEarlierResultCountsForAllThatTheStepReads(t *testing.T) {
	of := func(s contract.Spec, input string, change func(c *Conductor)) journal.Digests {
		c := conductor(local.Provider{})
		if change != nil {
			change(c)
		}
		return c.digests(s, []byte(input))
	}
	release := func(c *Conductor) { c.opts.ReleaseDigest = "sha256:1" }
	named := func(name string) pipeline.Key { return pipeline.Key{Stage: "a", Name: name} }
	reads, other := contract.Spec{Key: named("b"), Platform: true}, contract.Spec{Key: named("b")}
	base := of(reads, "{}", nil)
	require.Equal(t, base, of(reads, "{}", nil))
	require.Equal(t, []string{"tools"}, base.Changed(of(reads, "{}", func(c *Conductor) { c.opts.Images.Digest = "sha256:1" })))
	require.Equal(t, []string{"configuration"}, base.Changed(of(reads, "{}", release)))
	require.Equal(t, of(other, "{}", nil), of(other, "{}", release), "it does not read the platform release")
	require.Equal(t, []string{"input"}, base.Changed(of(contract.Spec{Key: named("c"), Platform: true}, "{}", nil)))
	require.Equal(t, []string{"input"}, base.Changed(of(reads, "[]", nil)))
}

// otherRoot is provider local with other files in its Terraform root.
type otherRoot struct {
	local.Provider
	files fs.FS
}

func (o otherRoot) Terraform(d providers.Deployment) (providers.Root, error) {
	root, err := o.Provider.Terraform(d)
	root.Files = o.files
	return root, err
}

func TestAnotherTerraformRootIsAnotherInput(t *testing.T) {
	of := func(text string) contract.TerraformInput {
		c := conductor(otherRoot{files: fstest.MapFS{"main.tf": {Data: []byte(text)}}})
		in, err := c.terraformInput()
		require.NoError(t, err)
		return in
	}
	require.Equal(t, of("# a"), of("# a"))
	require.NotEqual(t, of("# a"), of("# b"))
}

func TestTheRecordNamesWhatTheStepsRanWith(t *testing.T) {
	c := conductor(local.Provider{})
	c.opts.Images.Tools = map[string]string{"terraform": "sha256:1"}
	record := c.newRecord(config.Install)
	require.Equal(t, c.opts.Images.Tools, record.Tools)
	require.Equal(t, config.Install, record.Workflow)
}

func TestAnotherServerInAKubeconfig(t *testing.T) {
	const text = "clusters:\n- name: a\n  cluster: {server: https://cluster:6443, certificate-authority-data: eA==}\ncurrent-context: a\n"
	got, err := withServer(text, "https://127.0.0.1:6443")
	require.NoError(t, err)
	require.Contains(t, got, "server: https://127.0.0.1:6443")
	require.Contains(t, got, "certificate-authority-data: eA==")
	require.NotContains(t, got, "cluster:6443")
	_, err = withServer("\t", "x")
	require.ErrorContains(t, err, "decode the kubeconfig")
}
