package stages_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages"
	steps "github.com/slipway-sh/slipway/stages/all"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// elsewhere is a provider whose cluster Slipway does not run.
type elsewhere struct{ providers.Provider }

// localSite is what the provider local contributes to a deployment.
func localSite(t *testing.T, cfg *config.Config) contract.Site {
	t.Helper()
	site, err := conductor.SiteOf(local.Provider{}, providers.Deployment{Name: cfg.Global.Name, Scale: cfg.Global.Scale})
	require.NoError(t, err)
	return site
}

// needs is what each step of a workflow waits for.
func needs(t *testing.T, w conductor.Workflow, provider providers.Provider) map[string][]string {
	t.Helper()
	site, err := conductor.SiteOf(provider, providers.Deployment{Name: "demo", Scale: 50})
	require.NoError(t, err)
	nodes, err := conductor.Nodes(w, conductor.Inputs{Config: config.Default(), Release: &platform.Release{Version: "1.0.0", Components: []platform.Component{
		{Name: "web", Kind: platform.App, Enabled: true}, {Name: "database", Kind: platform.App, Enabled: true},
	}}, Site: site})
	require.NoError(t, err)
	out := map[string][]string{}
	for _, n := range nodes {
		out[n.String()] = []string{}
		for _, k := range n.Needs {
			out[n.String()] = append(out[n.String()], k.String())
		}
	}
	return out
}

func TestTheGraphOfAnInstall(t *testing.T) {
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
		"orchestrator/sync":                {"orchestrator/publish", "preorchestrator/argocd", "infrastructure/storage", "infrastructure/loadbalancer"},
		"postorchestrator/access":          {"orchestrator/sync"},
	}, needs(t, stages.Install(), local.Provider{}))
}

func TestTheGraphOfARemoval(t *testing.T) {
	require.Equal(t, map[string][]string{
		"infrastructure/node-remove":       {},
		"infrastructure/terraform-destroy": {"infrastructure/node-remove"},
		"infrastructure/inventory":         {"infrastructure/terraform-destroy"},
	}, needs(t, stages.Destroy(), local.Provider{}))

	require.Equal(t, map[string][]string{
		"infrastructure/platform-remove":    {},
		"infrastructure/platform-inventory": {"infrastructure/platform-remove"},
		"infrastructure/terraform-destroy":  {"infrastructure/platform-inventory"},
		"infrastructure/inventory":          {"infrastructure/terraform-destroy"},
	}, needs(t, stages.Destroy(), elsewhere{local.Provider{}}))
}

func TestStepsAreThoseOfTheGraphs(t *testing.T) {
	got, err := stages.Steps(local.Provider{}, nil)
	require.NoError(t, err)
	require.Len(t, got, 2, "configuring has no steps")
	for _, w := range stages.Workflows() {
		graph := needs(t, w, local.Provider{})
		require.Len(t, got[w.Name], len(graph), w.Name)
		for _, name := range got[w.Name] {
			require.Contains(t, graph, name)
		}
	}
	other, err := stages.Steps(elsewhere{local.Provider{}}, nil)
	require.NoError(t, err)
	require.Contains(t, other[config.Destroy], "infrastructure/platform-remove")
	require.NotContains(t, other[config.Install], "infrastructure/node")
}

// TestEveryStepHasCode: what is wired can run, and what has code is wired somewhere.
func TestEveryStepHasCode(t *testing.T) {
	code := steps.All(nil).Names()
	wired := []string{contract.StatusStep().String(), contract.DiagnosisStep().String()} // outside of workflows
	actions := []string{contract.NodeKey().String(), contract.NodeRemoveKey().String(), contract.CheckEarlierSpec().String()}
	for _, w := range stages.Workflows() {
		for _, provider := range []providers.Provider{local.Provider{}, elsewhere{local.Provider{}}} {
			for name := range needs(t, w, provider) {
				if !slices.Contains(actions, name) && !slices.Contains(wired, name) {
					wired = append(wired, name)
				}
			}
		}
	}
	require.ElementsMatch(t, code, wired)
}
