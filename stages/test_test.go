package stages_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/existing"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// tested is a release with tests, of which a component is off unless somebody switches it on.
func tested(t *testing.T) *platform.Release {
	t.Helper()
	r, err := platform.Load(fstest.MapFS{
		"a.yaml": {Data: []byte("{}")},
		platform.File: {Data: []byte(`apiVersion: slipway/v2
name: a
version: 1.0.0
namespaces: [{name: shop}]
components:
  - {name: web, kind: manifests, path: a.yaml, namespace: shop}
  - {name: cache, kind: manifests, path: a.yaml, namespace: shop, enabled: false}
tests:
  - {name: answers, suites: [smoke, full], component: web, path: a.yaml, namespace: shop}
  - {name: keeps, component: cache, path: a.yaml, namespace: shop}
  - {name: open, ready: [{endpoint: "shop/web:80"}]}
workloads:
  - {name: site, path: a.yaml, check: a.yaml, namespace: shop}
`)},
	})
	require.NoError(t, err)
	return r
}

func TestTheGraphOfTests(t *testing.T) {
	begin := []string{"infrastructure/leftovers"}
	with := func(steps ...string) map[string][]string {
		out := map[string][]string{"infrastructure/node": {}, "infrastructure/leftovers": {"infrastructure/node"}, "postorchestrator/leftovers": begin}
		for _, s := range steps {
			out[s] = begin
		}
		return out
	}
	on := config.Default()
	yes := true
	on.Platform.Components = map[string]config.Component{"cache": {Enabled: &yes}}
	for _, c := range []struct {
		suite stages.Suite
		cfg   *config.Config
		steps []string
	}{
		{stages.Suite{Name: "smoke"}, nil, []string{"test/answers"}},
		{stages.Suite{Name: "full"}, nil, []string{"test/answers", "test/open"}},
		{stages.Suite{Name: "full"}, on, []string{"test/answers", "test/keeps", "test/open"}},
		{stages.Suite{Name: "full", Component: "web"}, nil, []string{"test/answers"}},
		{stages.Suite{Name: platform.DeployApps}, nil, []string{"apps-deploy/site"}},
		{stages.Suite{Name: platform.CheckApps}, nil, []string{"apps-check/site"}},
		{stages.Suite{Name: platform.DestroyApps}, nil, []string{"apps-destroy/site"}},
		{stages.Suite{}, nil, []string{"test/answers", "test/open", "apps-deploy/site", "apps-check/site", "apps-destroy/site"}},
	} {
		require.Equal(t, with(c.steps...), graph(t, stages.Test(c.suite), local.Provider{}, tested(t), c.cfg), "%+v", c.suite)
	}
	there := with("test/answers")
	delete(there, "infrastructure/node")
	there["infrastructure/leftovers"] = []string{}
	require.Equal(t, there, graph(t, stages.Test(stages.Suite{Name: "smoke"}), existing.Provider{}, tested(t), nil))
}

func TestASuiteThatIsNot(t *testing.T) {
	environment, err := stages.EnvironmentOf(local.Provider{}, providers.Deployment{Name: "demo", Scale: 50})
	require.NoError(t, err)
	for suite, says := range map[stages.Suite]string{
		{Name: "smok"}:       "run the tests of suite smok: a 1.0.0 has none for what is installed; there are tests of: smoke, full, apps-deploy, apps-check, apps-destroy",
		{Component: "cache"}: "run the tests of component cache: a 1.0.0 has none for what is installed; there are tests of: web",
	} {
		_, err := stages.Nodes(stages.Test(suite), contract.Inputs{Config: config.Default(), Release: tested(t), Environment: environment})
		require.ErrorIs(t, err, &fault.Fault{Code: stages.CodeNoTests})
		require.EqualError(t, err, says)
		require.Equal(t, fault.Usage, fault.ClassOf(err))
	}
}

// TestAHookOnTests runs with them only where it names them.
func TestAHookOnTests(t *testing.T) {
	steps, err := stages.Steps(local.Provider{}, config.Default(), tested(t))
	require.NoError(t, err)
	require.Contains(t, steps[config.Test], "test/answers")
	unknown, err := stages.Steps(local.Provider{}, config.Default(), nil)
	require.NoError(t, err)
	require.Contains(t, unknown[config.Test], "test/*")
	cfg := config.Default()
	cfg.Hooks = []config.Hook{{Name: "always", After: config.WholeWorkflow}, {Name: "tests", After: config.WholeWorkflow, Workflows: []string{config.Test}}}
	require.Equal(t, cfg.Hooks[1:], cfg.HooksOf(config.Test))
	require.Equal(t, cfg.Hooks[:1], cfg.HooksOf(config.Install))
}

func TestFailedTestsAreOneFault(t *testing.T) {
	failed := func(stage, name string, class fault.Class) error {
		return &pipeline.StepError{Stage: stage, Step: name, Err: &fault.Fault{Code: "TST-002", Class: class, Err: errors.New("no")}}
	}
	conclude := func(s stages.Suite, errs ...error) error { return stages.Test(s).Conclude(errors.Join(errs...)) }
	smoke := stages.Suite{Name: "smoke"}
	require.NoError(t, conclude(smoke))
	err := conclude(smoke, errors.Join(failed(contract.StageTest, "answers", fault.Step), failed(contract.StageTest, "open", fault.Timeout)), nil)
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Equal(t, stages.CodeTests, f.Code)
	require.Equal(t, fault.Step, f.Class)
	require.EqualError(t, err, "run the tests: 2 of the tests failed: answers, open")
	require.Contains(t, f.Fix, "slipway test smoke")

	err = conclude(stages.Suite{Name: "full", Component: "web"}, failed(contract.StageTest, "answers", fault.Preflight))
	f, ok = errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Contains(t, f.Fix, "slipway test --component web")
	require.ErrorContains(t, conclude(stages.Suite{Name: platform.CheckApps}, failed(contract.StageAppsCheck, "site", fault.Step)), "1 of the workloads failed: site")

	for what, other := range map[string]error{
		"another step":  failed(contract.StageInfrastructure, "leftovers", fault.Step),
		"a bug":         failed(contract.StageTest, "open", fault.Bug),
		"a run stopped": &fault.Fault{Code: pipeline.CodeCancelled, Class: fault.Cancelled, Err: errors.New("stopped")},
		"a hook":        fmt.Errorf("run the hook: %w", errors.New("no")),
	} {
		all := errors.Join(failed(contract.StageTest, "answers", fault.Step), other)
		require.Equal(t, all, stages.Test(smoke).Conclude(all), what)
	}
}
