package component

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	gitRelease = "  - {name: gitea, kind: chart, path: chart, namespace: shop, images: [nginx]}\n"
	atConfig   = "/api/v1/namespaces/shop/configmaps/gitea"
	atServer   = "/apis/apps/v1/namespaces/shop/deployments/gitea"
	atMigrate  = "/apis/batch/v1/namespaces/shop/jobs/migrate"
)

// git is a fixture with a chart that has these templates.
func git(t *testing.T, templates ...string) *fixture {
	t.Helper()
	return newFixture(t, gitRelease, gitFiles(templates...))
}

func gitFiles(templates ...string) map[string]string {
	return map[string]string{"chart/Chart.yaml": "{apiVersion: v2, name: gitea, version: 1.0.0}", "chart/templates/all.yaml": strings.Join(templates, "\n---\n")}
}

// git installs the chart, and returns how many objects that has changed.
func (s *fixture) git(t *testing.T) int {
	t.Helper()
	out, err := s.install(t.Context(), gitInput())
	require.NoError(t, err)
	return out.Changed
}

func gitInput() contract.ComponentInput {
	in := webInput()
	in.Component = "gitea"
	return in
}

// hook is a Job of a chart that runs at an event.
func hook(name, event, more string) string {
	return "{apiVersion: batch/v1, kind: Job, metadata: {name: " + name + ", annotations: {helm.sh/hook: '" + event + "'" + more + "}}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'docker.io/library/nginx:1'}]}}}}"
}

// made are the names of the Jobs that were made, in their order.
func (s *fixture) jobsMade() (out []string) {
	for _, w := range s.api.Writes() {
		if name, is := strings.CutPrefix(w, "PATCH /apis/batch/v1/namespaces/shop/jobs/"); is {
			out = append(out, name)
		}
	}
	return out
}

// TestTheSameInputsRenderNothingAnew: a chart with a random password would differ each time.
func TestTheSameInputsRenderNothingAnew(t *testing.T) {
	config := "{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}, data: {password: '{{ randAlphaNum 16 }}', revision: '{{ .Release.Revision }}', upgrade: '{{ .Release.IsUpgrade }}'}}"
	s := git(t, config)
	require.Equal(t, 1, s.git(t))
	first := s.at(atConfig, "data").(map[string]any)
	require.Equal(t, "1", first["revision"])
	require.Equal(t, "false", first["upgrade"])
	s.held(t, gitInput())
	s.api.Set(t, atConfig, "data: {password: edited}")
	_, err := s.verify(t.Context(), gitInput())
	require.ErrorIs(t, err, plan.ErrChange)
	require.Equal(t, 1, s.git(t))
	require.Equal(t, first, s.at(atConfig, "data"))

	in := gitInput()
	in.Values = []byte(`{"more": true}`)
	_, err = s.verify(t.Context(), in)
	require.ErrorIs(t, err, plan.ErrChange)
	_, err = s.install(t.Context(), in)
	require.NoError(t, err)
	next := s.at(atConfig, "data").(map[string]any)
	require.Equal(t, "2", next["revision"])
	require.Equal(t, "true", next["upgrade"])
	require.NotEqual(t, first["password"], next["password"])
}

// TestWhatSomebodyEditedIsRestored, and what was scaled, without the chart's hooks.
func TestWhatSomebodyEditedIsRestored(t *testing.T) {
	s := git(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: gitea}, spec: {template: {spec: {containers: [{name: a, image: 'docker.io/library/nginx:1'}]}}}}",
		hook("migrate", "pre-install,post-upgrade", ""))
	require.Equal(t, 1, s.git(t))
	require.Equal(t, []string{"migrate"}, s.jobsMade())
	for _, replicas := range []string{"0", "3"} {
		s.api.Set(t, atServer, "spec: {replicas: "+replicas+"}")
		require.Equal(t, 1, s.git(t))
		require.EqualValues(t, 1, s.at(atServer, "spec", "replicas"))
		s.held(t, gitInput())
	}
	require.Equal(t, []string{"migrate"}, s.jobsMade())
}

// TestTheHooksOfAChart run before and after it is applied, by weight, once for each upgrade.
func TestTheHooksOfAChart(t *testing.T) {
	config := "{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}, data: {size: '{{ .Values.size }}'}}"
	s := git(t, config, hook("later", "pre-install", ", helm.sh/hook-weight: '5'"), hook("sooner", "pre-install", ", helm.sh/hook-delete-policy: hook-succeeded"),
		hook("migrate", "pre-upgrade", ""), hook("after", "post-install,post-upgrade", ""), hook("never", "test", ""))
	p := s.preview(t, gitInput())
	require.Len(t, p.Notes(), 3)
	require.Equal(t, contract.PlannedChange{Of: contract.PlanJobs, Action: contract.PlanRun, Name: "Job shop/sooner", Note: "a hook of the chart gitea"}, p.Notes()[0])
	s.git(t)
	require.Equal(t, []string{"sooner", "later", "after"}, s.jobsMade())
	require.Nil(t, s.api.Get("/apis/batch/v1/namespaces/shop/jobs/sooner"), "its policy says so")
	require.NotNil(t, s.api.Get("/apis/batch/v1/namespaces/shop/jobs/later"))
	writes := s.api.Writes()
	at := func(path string) int {
		for i, w := range writes {
			if strings.HasSuffix(w, path) {
				return i
			}
		}
		return -1
	}
	require.Less(t, at("jobs/later"), at("configmaps/gitea"))
	require.Less(t, at("configmaps/gitea"), at("jobs/after"))
	require.Subset(t, s.listed(t, "gitea"), []string{"ConfigMap shop/gitea", "Job shop/later", "Job shop/after"}, "they go with it")
	containers := s.at("/apis/batch/v1/namespaces/shop/jobs/later", "spec", "template", "spec", "containers").([]any)
	require.Equal(t, "slipway.local/nginx@sha256:00", containers[0].(map[string]any)["image"])
	s.held(t, gitInput())

	in := gitInput()
	in.Values = []byte(`{"size": "2"}`)
	_, err := s.install(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, []string{"sooner", "later", "after", "migrate", "after"}, s.jobsMade())
	in.Values = []byte(`{"size": "2", "unused": true}`)
	_, err = s.install(t.Context(), in)
	require.NoError(t, err)
	require.Len(t, s.jobsMade(), 5, "it renders to the same")
}

// TestAnUpgradeThatWasKilled is carried out anew, with its hooks.
func TestAnUpgradeThatWasKilled(t *testing.T) {
	s := git(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}}", hook("migrate", "pre-install", ""))
	works := s.api.Controller
	s.api.Controller = func(path string, o map[string]any) {
		if works(path, o); path == atMigrate {
			o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True"}}}
		}
	}
	_, err := s.install(t.Context(), gitInput())
	require.ErrorIs(t, err, &fault.Fault{Code: CodeJob})
	require.Nil(t, s.api.Get(atConfig))
	s.api.Controller = works
	require.Equal(t, 1, s.git(t))
	require.NotNil(t, s.api.Get(atConfig))
	s.held(t, gitInput())
}

// TestAnInstallThatFailedGoesOnWithWhatItRendered: pods may have its random password already.
func TestAnInstallThatFailedGoesOnWithWhatItRendered(t *testing.T) {
	s := git(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}, data: {password: '{{ randAlphaNum 16 }}', upgrade: '{{ .Release.IsUpgrade }}'}}", hook("migrate", "post-install,post-upgrade", ""))
	works := s.api.Controller
	fails := func(path string, o map[string]any) {
		if works(path, o); path == atMigrate {
			o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True"}}}
		}
	}
	in := gitInput()
	for _, values := range []string{`{}`, `{"more": true}`} {
		in.Values = []byte(values)
		s.api.Controller = fails
		_, err := s.install(t.Context(), in)
		require.ErrorIs(t, err, &fault.Fault{Code: CodeJob})
		made := s.at(atConfig, "data")
		s.api.Controller = works
		_, err = s.install(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, made, s.at(atConfig, "data"))
		s.held(t, in)
	}
	require.Equal(t, "true", s.at(atConfig, "data", "upgrade"))
	require.Equal(t, []string{"migrate", "migrate", "migrate", "migrate"}, s.jobsMade())
}

// TestAnUpgradeDeletesNoData: the component's list says what the chart no longer has.
func TestAnUpgradeDeletesNoData(t *testing.T) {
	of := func(kind, name string) string {
		return "{apiVersion: v1, kind: " + kind + ", metadata: {name: " + name + "}}"
	}
	s := git(t, of("ConfigMap", "gitea"), of("ConfigMap", "old"), of("ConfigMap", "theirs"), of("PersistentVolumeClaim", "rows"))
	s.git(t)
	s.api.Set(t, "/api/v1/namespaces/shop/configmaps/theirs", "metadata: {labels: {"+kube.DeploymentLabel+": other}}")
	s.release(t, gitRelease, gitFiles(of("ConfigMap", "gitea")))
	p := s.preview(t, gitInput())
	old, known := p.At("/api/v1/namespaces/shop/configmaps/old")
	require.True(t, known)
	require.Nil(t, old.After)
	s.git(t)
	for path, stays := range map[string]bool{"configmaps/gitea": true, "configmaps/old": false, "configmaps/theirs": true, "persistentvolumeclaims/rows": true} {
		require.Equal(t, stays, s.api.Get("/api/v1/namespaces/shop/"+path) != nil, path)
	}
}

// TestAnUpgradeKeepsWhatHooksMade, as Helm does: a password that only the first install renders is
// still in use.
func TestAnUpgradeKeepsWhatHooksMade(t *testing.T) {
	const at = "/api/v1/namespaces/shop/secrets/password"
	s := git(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}, data: {size: '{{ .Values.size }}'}}",
		"{{ if .Release.IsInstall }}{apiVersion: v1, kind: Secret, metadata: {name: password, annotations: {helm.sh/hook: pre-install}}, stringData: {password: '{{ randAlphaNum 16 }}'}}{{ end }}")
	s.git(t)
	made := s.at(at, "data")
	require.NotNil(t, made)
	in := gitInput()
	in.Values = []byte(`{"size": "2"}`)
	for range 2 {
		_, err := s.install(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, "2", s.at(atConfig, "data", "size"))
		require.Equal(t, made, s.at(at, "data"))
		require.Contains(t, s.listed(t, "gitea"), "Secret shop/password", "a destroy removes it")
		s.held(t, in)
	}
}

// TestAHookWhosePodDoesNotStart is told with its reason while it is waited for.
func TestAHookWhosePodDoesNotStart(t *testing.T) {
	s := git(t, hook("migrate", "pre-install", ""))
	s.api.Controller = nil
	s.api.Set(t, "/api/v1/namespaces/shop/pods/migrate-1", "{metadata: {name: migrate-1, namespace: shop, labels: {job-name: migrate}}, spec: {containers: [{name: a, image: 'example.com/none:1'}]}, "+
		"status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image \"example.com/none:1\"'}}}]}}")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := s.install(ctx, gitInput())
	require.ErrorContains(t, err, "image cannot be pulled")
	require.ErrorContains(t, err, "pod migrate-1")
}

// TestAChartThatCannotBeRendered is the chart's fault; a cluster that does not answer is not.
func TestAChartThatCannotBeRendered(t *testing.T) {
	for text, says := range map[string]string{
		`{{ fail "no host" }}`: "no host",
		"{kind: ConfigMap}":    "apiVersion, kind or metadata.name is missing",
	} {
		_, err := git(t, text).install(t.Context(), gitInput())
		refused(t, err, contract.CodeUnusable, "render the chart gitea: ", says)
	}
	s := git(t, "{}")
	s.release(t, gitRelease, map[string]string{"chart/Chart.yaml": "{apiVersion: v2, name: gitea, version: 1.0.0, kubeVersion: '>=1.99'}", "chart/templates/all.yaml": "{}"})
	_, err := s.install(t.Context(), gitInput())
	refused(t, err, contract.CodeUnusable, "the chart requires Kubernetes >=1.99, and the cluster has v1.35.0")
}

// TestAChartLooksThingsUp in the cluster, as Helm has it do.
func TestAChartLooksThingsUp(t *testing.T) {
	s := git(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}, data: {found: '{{ (lookup \"v1\" \"ConfigMap\" \"shop\" \"settings\").data.k }}'}}")
	s.api.Set(t, "/api/v1/namespaces/shop/configmaps/settings", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {k: v}}")
	s.git(t)
	require.Equal(t, "v", s.at(atConfig, "data", "found"))
}

// refused fails the test unless err has that code, is of class Step, and says all
// of it.
func refused(t *testing.T, err error, code fault.Code, says ...string) {
	t.Helper()
	require.ErrorIs(t, err, &fault.Fault{Code: code})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	for _, s := range says {
		require.ErrorContains(t, err, s)
	}
}

// TestAChartThatIsRenderedEndsWithItsStep: what it renders to afterwards is not applied.
func TestAChartThatIsRenderedEndsWithItsStep(t *testing.T) {
	s := git(t, "{{ range until 2000 }}{{ range until 2000 }}{{ end }}{{ end }}{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}}")
	for name, env := range map[string]*step.Env{"install": s.env, "plan": s.env.Planned(new(plan.Plan).Of("orchestrator/gitea"))} {
		interrupt := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(interrupt) })
		_, err := run(ctx, env, gitInput())
		require.ErrorIs(t, err, interrupt, name)
	}
	time.Sleep(time.Second) // the templates end meanwhile
	require.Nil(t, s.api.Get(atConfig))
}

// TestAChartAsksNoNameServer: neither in an install nor in a plan.
func TestAChartAsksNoNameServer(t *testing.T) {
	s := git(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}, data: {address: '<{{ getHostByName \"localhost\" }}>'}}")
	require.Equal(t, "<>", value(t, s.preview(t, gitInput()), atConfig, "data", "address"))
	s.git(t)
	require.Equal(t, "<>", s.at(atConfig, "data", "address"))
}
