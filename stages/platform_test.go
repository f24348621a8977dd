package stages_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// components has some of each kind; what is before them in the file comes after them in
// the graph.
const components = `
components:
  - {name: console, kind: manifests, path: a.yaml, namespace: shop, after: [seed, optional]}
  - {name: seed, kind: job, path: job.yaml, namespace: shop, after: [database]}
  - {name: database, kind: chart, path: chart, namespace: shop, images: [db]}
  - {name: optional, kind: chart, path: chart, namespace: shop, after: ["off"], optional: true}
  - {name: "off", kind: chart, path: chart, namespace: shop, enabled: false, images: [db]}
  - {name: seen, kind: gate, after: [console, database], ready: [{rollout: apps/v1/Deployment shop/console}]}
`

// withApps has a git server and Argo CD that come after a component, an app that does, and
// a component that comes after an app.
const withApps = `
certificates: [{secret: code/git-tls, hosts: ["*.{domain}"]}]
components:
  - {name: after-web, kind: job, path: job.yaml, namespace: shop, after: [web]}
  - {name: web, kind: app, path: gitops/web, namespace: shop, wave: 2, after: [queue]}
  - {name: api, kind: app, path: gitops/web, namespace: shop, wave: 1}
  - {name: addons, kind: appset, path: appset.yaml, namespace: cd}
  - {name: queue, kind: chart, path: chart, namespace: shop}
  - {name: store, kind: chart, path: chart, namespace: code}
  - {name: git-server, kind: chart, path: chart, namespace: code, required: true, after: [store]}
  - {name: argocd, kind: manifests, path: a.yaml, namespace: cd, required: true}
gitops:
  engine: argocd
  server:
    component: git-server
    service: code/git:443
    hosts: ["git.{domain}"]
    repository: slipway/platform
    accounts: {administrator: code/root, writer: code/writer, reader: code/reader}
`

// load reads a release with these sections.
func load(t *testing.T, sections string) *platform.Release {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		platform.File: "apiVersion: slipway/v2\nname: sample\nversion: 1.0.0\nnamespaces: [{name: shop}, {name: code}, {name: cd}]\n" + sections,
		"a.yaml":      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "job.yaml": "{apiVersion: batch/v1, kind: Job, metadata: {name: a}}",
		"appset.yaml":      "{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, metadata: {name: a}}",
		"chart/Chart.yaml": "name: a", "gitops/web/Chart.yaml": "name: web", "settings.json": "{}",
		"pod.yaml": "{apiVersion: v1, kind: Pod, metadata: {namespace: shop}, spec: {containers: [{name: a, image: db}]}}",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	r, err := platform.Load(files)
	require.NoError(t, err)
	return r
}

// installs is the graph of an install of a release, without what comes before it.
func installs(t *testing.T, r *platform.Release, change func(*config.Config)) map[string][]string {
	t.Helper()
	cfg := config.Default()
	if change != nil {
		change(cfg)
	}
	out := graph(t, stages.Install(), local.Provider{}, r, cfg)
	for name := range out {
		if strings.HasPrefix(name, "infrastructure/") {
			delete(out, name)
		}
	}
	return out
}

// after are the needs of a component besides those of every one.
func after(t *testing.T, g map[string][]string, name string) []string {
	t.Helper()
	require.Contains(t, g, name)
	require.Contains(t, g[name], "preorchestrator/secrets")
	return slices.DeleteFunc(slices.Clone(g[name]), func(n string) bool {
		return slices.Contains([]string{
			"infrastructure/ownership", "infrastructure/local-addons", "preorchestrator/secrets", "preorchestrator/tls", "preorchestrator/configmaps", "preorchestrator/requires",
		}, n)
	})
}

func TestComponentsComeAfterEachOther(t *testing.T) {
	g := installs(t, load(t, components), nil)
	require.Equal(t, []string{"orchestrator/seed", "orchestrator/optional"}, after(t, g, "orchestrator/console"))
	require.Equal(t, []string{"orchestrator/database"}, after(t, g, "orchestrator/seed"))
	require.Empty(t, after(t, g, "orchestrator/database"))
	require.Equal(t, []string{"orchestrator/console", "orchestrator/database"}, after(t, g, "orchestrator/seen"))
	require.Equal(t, []string{
		"infrastructure/storage", "infrastructure/loadbalancer", "orchestrator/console", "orchestrator/seed", "orchestrator/database", "orchestrator/optional", "orchestrator/seen",
	}, g["postorchestrator/access"])
}

// TestAPlatformWithoutApps has no git server, no tree and no Argo CD.
func TestAPlatformWithoutApps(t *testing.T) {
	g := installs(t, load(t, components), nil)
	for _, name := range []string{"preorchestrator/git", "preorchestrator/repository", "orchestrator/publish", "orchestrator/projects", "orchestrator/sync"} {
		require.NotContains(t, g, name)
	}
}

// TestAComponentNamedLikeAStep is refused, where a workflow has that step, with its line.
func TestAComponentNamedLikeAStep(t *testing.T) {
	check := func(name, sections string) error {
		r := load(t, strings.ReplaceAll(components, "console", name)+sections)
		return stages.CheckSteps(local.Provider{}, config.Default(), r)
	}
	require.NoError(t, check("console", ""))
	for name, sections := range map[string]string{
		"prune": "", "namespaces": "", "restore": "", "migrate-after": "", "requires": "requires: [{secret: shop/license}]\n",
	} {
		err := check(name, sections)
		require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid}, name)
		require.ErrorContains(t, err, `line 7: components[0].name: got "`+name+`", which is a step of Slipway, want another name`)
	}
	apps := strings.NewReplacer("name: queue", "name: publish", "after: [queue]", "after: [publish]").Replace(withApps)
	require.ErrorContains(t, stages.CheckSteps(local.Provider{}, config.Default(), load(t, apps)), `components[4].name: got "publish"`)
	require.NoError(t, stages.CheckSteps(local.Provider{}, config.Default(), load(t, strings.ReplaceAll(withApps, "name: api", "name: prune"))), "an app is no step")
}

func TestComponentsThatAreOffAreNotInstalled(t *testing.T) {
	on, not := true, false
	g := installs(t, load(t, components), func(c *config.Config) {
		c.Platform.Components = map[string]config.Component{"off": {Enabled: &on}, "seed": {Enabled: &not}}
	})
	require.Equal(t, []string{"orchestrator/off"}, after(t, g, "orchestrator/optional"))
	require.NotContains(t, g, "orchestrator/seed")
	require.Equal(t, []string{"orchestrator/database", "orchestrator/optional"}, after(t, g, "orchestrator/console"), "what the one that is off would have waited for")

	g = installs(t, load(t, withApps), func(c *config.Config) {
		c.Platform.Components = map[string]config.Component{"web": {Enabled: &not}, "api": {Enabled: &not}, "addons": {Enabled: &not}}
	})
	require.Equal(t, []string{"orchestrator/queue"}, after(t, g, "orchestrator/after-web"))
	for _, name := range []string{"orchestrator/sync", "orchestrator/publish", "preorchestrator/git", "orchestrator/projects"} {
		require.NotContains(t, g, name, "every app is off")
	}
}

// TestWhatIsPreparedIsThatOfTheRelease: every component waits for it, and for nothing that
// there is not.
func TestWhatIsPreparedIsThatOfTheRelease(t *testing.T) {
	const sections = `
configMaps: [{name: settings, namespace: shop, data: {domain: "{domain}"}}]
certificates: [{secret: shop/tls, hosts: ["*.{domain}"]}]
requires: [{secret: shop/license}]
`
	g := installs(t, load(t, components+sections), nil)
	for _, name := range []string{"preorchestrator/tls", "preorchestrator/configmaps", "preorchestrator/requires"} {
		require.Equal(t, []string{"preorchestrator/namespaces"}, g[name])
		require.Contains(t, g["orchestrator/database"], name)
	}
	bare := installs(t, load(t, components), nil)
	require.Equal(t, []string{"infrastructure/ownership", "infrastructure/local-addons", "preorchestrator/secrets"}, bare["orchestrator/database"])
}

func TestAppsAndComponentsComeAfterEachOther(t *testing.T) {
	g := installs(t, load(t, withApps), nil)
	require.Equal(t, []string{"orchestrator/sync"}, after(t, g, "orchestrator/after-web"), "after an app is after all of them")
	require.Equal(t, []string{"infrastructure/storage", "infrastructure/loadbalancer", "orchestrator/queue", "orchestrator/projects"}, g["orchestrator/sync"], "before an app is before all of them")
	require.Empty(t, after(t, g, "orchestrator/queue"))
	require.NotContains(t, g, "orchestrator/web")
	require.Equal(t, []string{"orchestrator/projects"}, after(t, g, "orchestrator/addons"))

	require.Empty(t, after(t, g, "preorchestrator/store"), "what the git server comes after is of its stage")
	require.Equal(t, []string{"preorchestrator/store"}, after(t, g, "preorchestrator/git-server"))
	require.Equal(t, []string{"preorchestrator/git-server"}, g["preorchestrator/git"])
	require.Equal(t, []string{"preorchestrator/git"}, g["orchestrator/publish"])
	require.Equal(t, []string{"orchestrator/publish", "preorchestrator/argocd"}, g["orchestrator/projects"])
}

// withAdopted is withApps with components that Argo CD takes over, itself among them.
func withAdopted() string {
	return strings.NewReplacer(
		"{name: argocd, kind: manifests, path: a.yaml, namespace: cd, required: true}", `{name: argocd, kind: adopted, path: gitops/web, namespace: cd, required: true, after: [secrets-operator]}
  - {name: secrets-operator, kind: adopted, path: gitops/web, namespace: shop}
  - {name: token, kind: job, path: job.yaml, namespace: shop, after: [secrets-operator]}`,
		"wave: 2, after: [queue]}", "wave: 2, after: [secrets-operator]}",
	).Replace(withApps)
}

// TestAdoptedComponentsAreHandedOver: they are installed before Argo CD can have them, and
// what comes after one waits until it does, but for what Argo CD itself rests on.
func TestAdoptedComponentsAreHandedOver(t *testing.T) {
	r := load(t, withAdopted())
	g := installs(t, r, nil)
	require.Equal(t, []string{"preorchestrator/secrets-operator"}, after(t, g, "preorchestrator/argocd"))
	require.Empty(t, after(t, g, "preorchestrator/secrets-operator"))
	for _, name := range []string{"argocd", "secrets-operator"} {
		require.Equal(t, []string{"preorchestrator/" + name, "orchestrator/projects"}, g["orchestrator/"+name])
	}
	require.Equal(t, []string{"orchestrator/secrets-operator"}, after(t, g, "orchestrator/token"))
	require.Contains(t, g["orchestrator/sync"], "orchestrator/secrets-operator")
	require.Equal(t, []string{"orchestrator/publish", "preorchestrator/argocd"}, g["orchestrator/projects"])
	for _, name := range []string{"argocd", "secrets-operator"} {
		require.Contains(t, g["postorchestrator/access"], "orchestrator/"+name)
		require.NotContains(t, g["postorchestrator/access"], "preorchestrator/"+name)
	}

	not := false
	g = installs(t, r, func(c *config.Config) {
		c.Platform.Components = map[string]config.Component{"secrets-operator": {Enabled: &not}}
	})
	require.NotContains(t, g, "orchestrator/secrets-operator")
	require.Empty(t, after(t, g, "orchestrator/token"))

	environment, err := stages.EnvironmentOf(local.Provider{}, providers.Deployment{Name: "demo", Scale: 50})
	require.NoError(t, err)
	in := contract.Inputs{Config: config.Default(), Release: r, Environment: environment}
	s, err := stages.Rendering(in, nil)
	require.NoError(t, err)
	order, err := stages.Order(in)
	require.NoError(t, err)
	shown := slices.DeleteFunc(order, func(name string) bool { return name != "argocd" && name != "secrets-operator" })
	require.Equal(t, []string{"secrets-operator", "argocd"}, shown, "each once")
	require.NotNil(t, s.Projects)
}

// TestAChartThatSaysWhereTheTreeIs comes after whatever finds that out.
func TestAChartThatSaysWhereTheTreeIs(t *testing.T) {
	told := strings.Replace(withApps, "gitops:\n", `  - {name: told, kind: chart, path: chart, namespace: shop, values: {url: "{git.url}", rest: "{git.revision} {git.path}"}}
gitops:
`, 1)
	r := load(t, told)
	require.Equal(t, []string{"orchestrator/projects"}, after(t, installs(t, r, nil), "orchestrator/told"))
	fill := func(cfg *config.Config) map[string]any {
		in := contract.Inputs{Config: cfg, Release: r, Environment: localEnvironment(t, cfg)}
		s, err := stages.Rendering(in, nil)
		require.NoError(t, err)
		at := slices.IndexFunc(s.Components, func(c contract.ComponentInput) bool { return c.Component == "told" })
		return s.Components[at].Fill
	}
	require.Equal(t, map[string]any{"git.url": contract.NotKnown, "git.revision": contract.Branch, "git.path": ""}, fill(config.Default()))
	theirs := config.Default()
	theirs.Git.URL, theirs.Git.Revision, theirs.Git.Path = "https://git.example.org/team/platform.git", "v1", "tree"
	require.Equal(t, map[string]any{"git.url": "https://git.example.org/team/platform.git", "git.revision": "v1", "git.path": "tree"}, fill(theirs))
}

// TestAppsOfARepositoryOfTheUsers: the platform has no git server then.
func TestAppsOfARepositoryOfTheUsers(t *testing.T) {
	g := installs(t, load(t, withApps), func(c *config.Config) { c.Git.URL = "https://git.example.org/team/platform.git" })
	for _, name := range []string{"preorchestrator/git-server", "preorchestrator/git", "orchestrator/publish"} {
		require.NotContains(t, g, name)
	}
	require.Empty(t, after(t, g, "preorchestrator/repository"))
	require.Equal(t, []string{"preorchestrator/repository", "preorchestrator/argocd"}, g["orchestrator/projects"])
	require.Contains(t, g["orchestrator/sync"], "orchestrator/projects")
}

// TestAppsThatComeFromNowhere are refused before anything is started.
func TestAppsThatComeFromNowhere(t *testing.T) {
	server := strings.Index(withApps, "  server:")
	r := load(t, withApps[:server])
	environment, err := stages.EnvironmentOf(local.Provider{}, providers.Deployment{Name: "demo", Scale: 50})
	require.NoError(t, err)
	_, err = stages.Nodes(stages.Install(), contract.Inputs{Config: config.Default(), Release: r, Environment: environment})
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeUnfit})
}

// TestAnOptionalComponentThatFailsIsAWarning: what needs it is left out, and the rest goes
// on.
func TestAnOptionalComponentThatFailsIsAWarning(t *testing.T) {
	ended := map[string]pipeline.Status{}
	var access contract.AccessInput
	fail := func(name string) {
		clear(ended)
		run := func(_ context.Context, req contract.Request) contract.Result {
			if req.ID() == "postorchestrator/access" {
				require.NoError(t, json.Unmarshal(req.Input, &access))
			}
			if req.ID() == name {
				return contract.Result{Status: contract.Failed, Fault: &fault.Fault{Code: "CMP-001", Class: fault.Step, Err: errors.New("no")}}
			}
			return contract.Result{Status: contract.Reused, Output: []byte("{}")}
		}
		results, err := stages.Walk(t.Context(), stages.Install(), contract.PlanRequest{Run: "r1", Inputs: contract.Inputs{Config: config.Default(), Release: load(t, components), Environment: localEnvironment(t, config.Default())}},
			func(ctx context.Context, _ contract.Spec, req contract.Request) (contract.Result, error) {
				return run(ctx, req), nil
			})
		require.NoError(t, err)
		for _, r := range results {
			ended[r.String()] = r.Status
		}
	}
	fail("orchestrator/optional")
	require.Equal(t, pipeline.Warned, ended["orchestrator/optional"])
	require.Equal(t, pipeline.Skipped, ended["orchestrator/console"])
	require.Equal(t, pipeline.Reused, ended["orchestrator/seed"])
	require.Equal(t, pipeline.Reused, ended["postorchestrator/access"], "the rest is looked at, and shown")
	require.Equal(t, []string{"off", "console", "optional", "seen"}, access.Disabled)
	fail("orchestrator/database")
	require.Equal(t, pipeline.Failed, ended["orchestrator/database"])
	require.Equal(t, pipeline.Blocked, ended["orchestrator/seed"])
	require.Equal(t, pipeline.Blocked, ended["postorchestrator/access"])
	require.Equal(t, pipeline.Reused, ended["orchestrator/optional"])
}
