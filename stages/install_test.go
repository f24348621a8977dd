package stages_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	releases "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/existing"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/incontainer"
)

// localEnvironment is what the provider local contributes to a deployment.
func localEnvironment(t *testing.T, cfg *config.Config) contract.Environment {
	t.Helper()
	environment, err := stages.EnvironmentOf(local.Provider{}, providers.Deployment{Name: cfg.Global.Name, Scale: cfg.Global.Scale})
	require.NoError(t, err)
	return environment
}

// reference is the release that is installed unless the user names another one.
func reference(t *testing.T) *platform.Release {
	t.Helper()
	files, err := releases.Release(config.Default().Platform.Release)
	require.NoError(t, err)
	r, err := platform.Load(files)
	require.NoError(t, err)
	return r
}

// graph is what each step of a workflow waits for, for a release and a configuration; nil
// is the default one.
func graph(t *testing.T, w stages.Workflow, provider providers.Provider, r *platform.Release, cfg *config.Config) map[string][]string {
	t.Helper()
	if cfg == nil {
		cfg = config.Default()
	}
	environment, err := stages.EnvironmentOf(provider, providers.Deployment{Name: "demo", Scale: 50})
	require.NoError(t, err)
	nodes, err := stages.Nodes(w, contract.Inputs{Config: cfg, Release: r, Environment: environment})
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

// needs is the graph for the reference platform.
func needs(t *testing.T, w stages.Workflow, provider providers.Provider) map[string][]string {
	t.Helper()
	return graph(t, w, provider, reference(t), nil)
}

// waits reports whether a step waits for another one, through others if need be.
func waits(g map[string][]string, step, before string) bool {
	return slices.ContainsFunc(g[step], func(n string) bool { return n == before || waits(g, n, before) })
}

// TestTheGraphOfAnInstall: the machine is judged before anything starts, what is somebody else's
// before anything is made, storage and load balancer before the apps; what is shown and what is
// removed comes last.
func TestTheGraphOfAnInstall(t *testing.T) {
	g := needs(t, stages.Install(), local.Provider{})
	chain := []string{"infrastructure/preflight", "infrastructure/node", "infrastructure/verify", "infrastructure/terraform", "infrastructure/cluster"}
	last := []string{"orchestrator/prune", "postorchestrator/access"}
	for name := range g {
		if at := slices.Index(chain, name); at >= 0 {
			require.Equal(t, at > 0, len(g[name]) > 0, name)
		} else {
			require.True(t, waits(g, name, chain[len(chain)-1]), name)
		}
		if stage, _, _ := strings.Cut(name, "/"); stage != contract.StageInfrastructure {
			require.True(t, waits(g, name, "infrastructure/ownership"), name)
		}
		for _, end := range last {
			require.False(t, waits(g, name, end), "%s waits for %s", name, end)
		}
	}
	for i, name := range chain[1:] {
		require.Contains(t, g[name], chain[i])
	}
	for _, end := range last {
		require.Equal(t, []string{"infrastructure/storage", "infrastructure/loadbalancer", "preorchestrator/gitea", "preorchestrator/argocd", "orchestrator/sync"}, g[end])
	}
	prepared := []string{"infrastructure/local-addons", "preorchestrator/secrets", "preorchestrator/tls", "preorchestrator/configmaps"}
	for name, before := range map[string][]string{
		"infrastructure/storage": prepared[:1], "infrastructure/loadbalancer": prepared[:1],
		"preorchestrator/gitea": prepared, "preorchestrator/argocd": prepared,
		"preorchestrator/secrets": {"preorchestrator/namespaces"}, "preorchestrator/tls": {"preorchestrator/namespaces"}, "preorchestrator/configmaps": {"preorchestrator/namespaces"},
		"preorchestrator/git":  {"preorchestrator/gitea"},
		"orchestrator/publish": {"preorchestrator/git"}, "orchestrator/projects": {"orchestrator/publish", "preorchestrator/argocd"},
		"orchestrator/sync": {"infrastructure/storage", "infrastructure/loadbalancer", "orchestrator/projects"},
	} {
		require.Subset(t, g[name], before, name)
	}
	require.False(t, waits(g, "preorchestrator/git", "preorchestrator/argocd"), "the tree is pushed while Argo CD starts")
}

// On an existing cluster nothing is started, nothing is added to it, and it is
// checked before anything is changed.
func TestTheGraphOfAnInstallOnAClusterThatIsThere(t *testing.T) {
	own, there := needs(t, stages.Install(), local.Provider{}), needs(t, stages.Install(), existing.Provider{})
	for _, name := range []string{"infrastructure/node", "infrastructure/local-addons"} {
		delete(own, name)
	}
	own["infrastructure/verify"] = []string{"infrastructure/preflight"}
	own["infrastructure/cluster-preflight"] = []string{"infrastructure/verify"}
	own["infrastructure/terraform"] = []string{"infrastructure/cluster-preflight"}
	// What it lacks is told before anything of the platform is made.
	own["preorchestrator/namespaces"] = []string{"infrastructure/storage", "infrastructure/loadbalancer"}
	for name, before := range own {
		own[name] = slices.DeleteFunc(before, func(b string) bool { return b == "infrastructure/local-addons" })
	}
	require.Equal(t, own, there)
}

// TestALoadBalancerIsAskedForWhereSomethingIsReachedThroughIt, on a cluster that is there
// already.
func TestALoadBalancerIsAskedForWhereSomethingIsReachedThroughIt(t *testing.T) {
	const one = "components: [{name: web, kind: manifests, path: a.yaml, namespace: shop}]\n"
	theirs, err := stages.EnvironmentOf(existing.Provider{}, providers.Deployment{Name: "demo", Section: json.RawMessage(`{"kubeconfig": "env:K"}`)})
	require.NoError(t, err)
	asked := func(environment contract.Environment, r *platform.Release, off bool) string {
		cfg := config.Default()
		if off {
			not := false
			cfg.Platform.Components = map[string]config.Component{"web": {Enabled: &not}}
		}
		e := &earlier{outputs: map[string]string{"infrastructure/cluster-preflight": "{}"}}
		_, err := stages.Verify(t.Context(), stages.Install(), contract.PlanRequest{Run: "r2", Inputs: contract.Inputs{Config: cfg, Release: r, Environment: environment}}, e.run)
		require.NoError(t, err)
		return string(e.asked["infrastructure/loadbalancer"].Input)
	}
	const unused, used = `{"image": "", "unused": true}`, `{"image": ""}`
	const link = "links: [{name: Web, urlTemplate: \"https://web.{domain}\", service: \"shop/web:443\", component: web}]\n"
	require.JSONEq(t, unused, asked(theirs, load(t, one), false))
	require.JSONEq(t, unused, asked(theirs, load(t, one+"links: [{name: Web, urlTemplate: \"https://web.{domain}\"}]\n"), false), "nobody asks there")
	require.JSONEq(t, used, asked(theirs, load(t, one+link), false))
	require.JSONEq(t, unused, asked(theirs, load(t, one+link), true))
	require.JSONEq(t, used, asked(theirs, load(t, one+"checks: [{name: it answers, service: \"shop/web:443\"}]\n"), false))
	require.JSONEq(t, used, asked(theirs, load(t, withApps), false), "the tree is pushed to its git server")
	require.JSONEq(t, used, asked(localEnvironment(t, config.Default()), load(t, one), false), "Slipway's own cluster has one")
}

// What the check of an existing cluster finds goes through Terraform as the
// outputs of others do.
func TestWhatIsFoundInAClusterThatIsThere(t *testing.T) {
	environment, err := stages.EnvironmentOf(existing.Provider{}, providers.Deployment{Name: "demo", Section: json.RawMessage(`{"kubeconfig": "env:K", "storageClass": "fast"}`)})
	require.NoError(t, err)
	require.Nil(t, environment.Local)
	require.Nil(t, environment.Addons)
	require.Equal(t, &providers.ExternalCluster{Kubeconfig: "env:K", StorageClass: "fast"}, environment.External)

	e := &earlier{outputs: map[string]string{"infrastructure/cluster-preflight": `{"apiEndpoint": "https://theirs", "storageClass": "fast"}`, "infrastructure/terraform": `{"apiEndpoint": "https://theirs", "storageClass": "fast"}`}}
	verifyAll(t, e, func(p *contract.PlanRequest) {
		p.Environment, p.Tools = environment, map[string]string{"kubectl": "1.35.4"}
	})
	for step, want := range map[string]string{
		"infrastructure/cluster-preflight": `{"kubernetes": "1.35.4", "storageClass": "fast", "admin": true}`,
		"infrastructure/terraform":         `{"vars": {"deployment": "demo", "api_endpoint": "https://theirs", "storage_class": "fast"}, "root": "` + environment.Terraform.Root + `"}`,
		"infrastructure/cluster":           `{"apiEndpoint": "https://theirs", "existing": true}`,
		"infrastructure/storage":           `{"storageClass": "fast", "image": "", "existing": true}`,
	} {
		require.JSONEq(t, want, string(e.asked[step].Input), step)
	}
	require.Len(t, environment.Terraform.Vars, 1, "the environment is that of other runs, too")
}

// TestTheGraphOfARemoval: what is in the cluster goes before what the cluster is made of, and what
// may be left is looked for last.
func TestTheGraphOfARemoval(t *testing.T) {
	for _, c := range []struct {
		provider providers.Provider
		order    []string
	}{
		{local.Provider{}, []string{"node-remove", "terraform-destroy", "inventory"}},
		{existing.Provider{}, []string{"platform-remove", "crds-remove", "platform-inventory", "terraform-destroy", "inventory"}},
	} {
		g := needs(t, stages.Destroy(), c.provider)
		for i, name := range c.order[1:] {
			require.True(t, waits(g, "infrastructure/"+name, "infrastructure/"+c.order[i]), name)
		}
		for name := range g {
			require.False(t, waits(g, name, "infrastructure/inventory"), name)
		}
	}
}

func TestStepsAreThoseOfTheGraphs(t *testing.T) {
	steps := func(provider providers.Provider, r *platform.Release) map[string][]string {
		got, err := stages.Steps(provider, config.Default(), r)
		require.NoError(t, err)
		require.Len(t, got, len(stages.Workflows()), "configuring has no steps")
		return got
	}
	got := steps(local.Provider{}, reference(t))
	for _, w := range stages.Workflows() {
		graph := needs(t, w, local.Provider{})
		require.Len(t, got[w.Name], len(graph), w.Name)
		for _, name := range got[w.Name] {
			require.Contains(t, graph, name)
		}
	}
	other := steps(existing.Provider{}, reference(t))
	require.Contains(t, other[config.Destroy], "infrastructure/platform-remove")
	require.NotContains(t, other[config.Install], "infrastructure/node")

	require.ElementsMatch(t, config.Workflows(), append(slices.Collect(maps.Keys(got)), config.Configure), "hooks are bound to these")
	unknown := steps(local.Provider{}, nil)
	require.Subset(t, unknown[config.Install], []string{"infrastructure/preflight", "postorchestrator/access", "preorchestrator/*", "orchestrator/*"}, "a release that is not known yet")
	require.NotContains(t, unknown[config.Install], "preorchestrator/gitea")
	require.NotContains(t, unknown[config.Destroy], "orchestrator/*")
}

// TestEveryStepHasCode: what is wired can run, and what has code is wired somewhere. The
// steps of components share theirs.
func TestEveryStepHasCode(t *testing.T) {
	shared := contract.ComponentStep().String()
	code := incontainer.Steps(nil).Names()
	wired := []string{contract.StatusStep().String(), contract.DiagnosisStep().String()} // outside of workflows
	actions := []string{contract.NodeKey().String(), contract.NodeRemoveKey().String(), contract.CheckEarlierSpec().String()}
	own := config.Default()
	own.Git.URL = "https://git.example.org/team/platform.git"
	all, adopts := load(t, components+"requires: [{secret: shop/license}]\n"), load(t, withAdopted())
	for _, w := range stages.Workflows() {
		for _, g := range []map[string][]string{
			needs(t, w, local.Provider{}), needs(t, w, existing.Provider{}), graph(t, w, local.Provider{}, reference(t), own), graph(t, w, local.Provider{}, all, nil),
			graph(t, w, local.Provider{}, adopts, nil), graph(t, w, local.Provider{}, load(t, withData), nil),
		} {
			for name := range g {
				stage, component, _ := strings.Cut(name, "/")
				if name == contract.BackupDataKey("rows").String() {
					name = contract.BackupDataStep().String()
				}
				for _, r := range []*platform.Release{reference(t), all, adopts} {
					if c, ok := r.Component(component); ok && c.Kind == platform.Adopted && stage == contract.StageOrchestrator {
						name = contract.HandoverStep().String()
					} else if ok && c.Installed() {
						name = shared
					}
				}
				switch {
				case contract.OfTest(pipeline.Key{Stage: stage}):
					name = stage + "/each"
				case name == contract.CleanUpStep().String():
					name = contract.LeftoversStep().String()
				}
				if !slices.Contains(actions, name) && !slices.Contains(wired, name) {
					wired = append(wired, name)
				}
			}
		}
	}
	require.ElementsMatch(t, code, wired)
}
