package component

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helmkube "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// asRendered completes what a chart renders to by nothing.
func asRendered(_ context.Context, b *bytes.Buffer) (*bytes.Buffer, error) { return b, nil }

// TestWhatSomebodyEditedIsNoUnchangedRelease: an upgrade brings it back.
func TestWhatSomebodyEditedIsNoUnchangedRelease(t *testing.T) {
	const (
		deployment = "/apis/apps/v1/namespaces/git/deployments/gitea"
		config     = "/api/v1/namespaces/git/configmaps/gitea"
	)
	objs, err := kube.Decode([]byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: gitea}
spec: {replicas: 1, template: {spec: {containers: [{name: gitea, image: i, command: [web], env: [{name: A, value: a}]}]}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}, data: {app.ini: x}}
`))
	require.NoError(t, err)
	for what, edit := range map[string]struct{ path, text, want string }{
		"none":       {deployment, "{}", ""},
		"scaled":     {deployment, "spec: {replicas: 0}", "Deployment/gitea would be changed"},
		"a variable": {deployment, "spec: {template: {spec: {containers: [{name: gitea, image: i, command: [web], env: [{name: A, value: b}]}]}}}", "Deployment/gitea would be changed"},
		"a command":  {deployment, "spec: {template: {spec: {containers: [{name: gitea, image: i, command: [sh], env: [{name: A, value: a}]}]}}}", "Deployment/gitea would be changed"},
		"a file":     {config, "data: {app.ini: y}", "ConfigMap/gitea would be changed"},
	} {
		t.Run(what, func(t *testing.T) {
			api := kubetest.Serve(t)
			client, err := kube.New(&rest.Config{Host: api.URL})
			require.NoError(t, err)
			_, err = client.Apply(t.Context(), objs, kube.ApplyOptions{Namespace: "git"})
			require.NoError(t, err)
			api.Set(t, edit.path, edit.text)
			r := &chartRelease{client: client, log: slog.New(slog.DiscardHandler), name: "gitea", namespace: "git"}
			found, err := r.drift(t.Context(), objs)
			require.NoError(t, err)
			if edit.want == "" {
				require.Empty(t, found)
			} else {
				require.Equal(t, []string{edit.want}, found)
			}
		})
	}
}

// TestWhatWasScaledIsSaid: a release whose number of pods was corrected is not unchanged.
func TestWhatWasScaledIsSaid(t *testing.T) {
	const deployment = "/apis/apps/v1/namespaces/git/deployments/gitea"
	manifest := []byte("{apiVersion: apps/v1, kind: Deployment, metadata: {name: gitea}, spec: {template: {}}}")
	api := kubetest.Serve(t)
	client, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer = &api.URL
	r := &chartRelease{
		client: client, log: slog.New(slog.DiscardHandler), name: "gitea", namespace: "git", complete: asRendered,
		chart: &chart.Chart{
			Metadata:  &chart.Metadata{Name: "gitea", Version: "1.0.0"},
			Templates: []*chart.File{{Name: "templates/gitea.yaml", Data: manifest}},
		},
		config: &action.Configuration{
			Releases: storage.Init(driver.NewMemory()), KubeClient: &helmkube.PrintingKubeClient{Out: io.Discard},
			RESTClientGetter: flags, Capabilities: chartutil.DefaultCapabilities, Log: func(string, ...any) {},
		},
	}
	change, err := r.converge(t.Context())
	require.NoError(t, err)
	require.Equal(t, installed, change)
	objs, err := kube.Decode(manifest)
	require.NoError(t, err)
	_, err = client.Apply(t.Context(), objs, kube.ApplyOptions{Namespace: "git"})
	require.NoError(t, err)
	for _, replicas := range []string{"0", "3"} {
		api.Set(t, deployment, "spec: {replicas: "+replicas+"}")
		for _, want := range []string{rescaled, unchanged} {
			change, err = r.converge(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, change)
		}
	}
}

// TestTheSameInputsRenderNothingAnew: a chart with a random password would differ each time.
func TestTheSameInputsRenderNothingAnew(t *testing.T) {
	const at = "/api/v1/namespaces/git/configmaps/gitea"
	api := kubetest.Serve(t)
	client, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer = &api.URL
	r := &chartRelease{
		client: client, log: slog.New(slog.DiscardHandler), name: "gitea", namespace: "git", complete: asRendered,
		labels: map[string]string{inputsLabel: "one"},
		chart: &chart.Chart{
			Metadata:  &chart.Metadata{Name: "gitea", Version: "1.0.0"},
			Templates: []*chart.File{{Name: "templates/gitea.yaml", Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}, data: {password: '{{ randAlphaNum 16 }}'}}")}},
		},
		config: &action.Configuration{
			Releases: storage.Init(driver.NewMemory()), KubeClient: &helmkube.PrintingKubeClient{Out: io.Discard},
			RESTClientGetter: flags, Capabilities: chartutil.DefaultCapabilities, Log: func(string, ...any) {},
		},
	}
	converge := func(want string) {
		t.Helper()
		change, err := r.converge(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, change)
	}
	converge(installed)
	converge(restored) // the fake of Helm's client makes nothing
	converge(unchanged)
	first := api.Get(at)["data"]
	api.Set(t, at, "data: {password: edited}")
	converge(restored)
	require.Equal(t, first, api.Get(at)["data"])
	r.labels = map[string]string{inputsLabel: "two"}
	converge(upgraded)
}

func TestHelmThatCannotInstall(t *testing.T) {
	r := &chartRelease{
		client: &kube.Client{}, log: slog.New(slog.DiscardHandler), name: "gitea", namespace: "gitea", complete: asRendered,
		chart: &chart.Chart{Metadata: &chart.Metadata{Name: "gitea", Version: "1.0.0"}},
		config: &action.Configuration{
			Releases:     storage.Init(driver.NewMemory()),
			KubeClient:   &helmkube.FailingKubeClient{PrintingKubeClient: helmkube.PrintingKubeClient{Out: io.Discard}, BuildError: errors.New("no route to the cluster")},
			Capabilities: chartutil.DefaultCapabilities,
			Log:          func(string, ...any) {},
		},
	}
	_, err := r.converge(t.Context())
	refused(t, err, CodeRelease, "install the chart gitea: ", "no route to the cluster")

	r.complete = func(context.Context, *bytes.Buffer) (*bytes.Buffer, error) { return nil, noImage("gitea") }
	_, err = r.converge(t.Context())
	refused(t, err, contract.CodeNoImage, "neither the bundle nor the registry has an image named gitea")
}

// TestAnUpgradeThatCannotBePlanned: only what cannot be rendered is the chart's fault.
func TestAnUpgradeThatCannotBePlanned(t *testing.T) {
	ch := &chart.Chart{Metadata: &chart.Metadata{Name: "gitea", Version: "1.0.0"}, Templates: []*chart.File{{Name: "templates/a.yaml", Data: []byte(`{{ fail "no host" }}`)}}}
	memory := driver.NewMemory()
	memory.SetNamespace("gitea")
	r := &chartRelease{
		client: &kube.Client{}, log: slog.New(slog.DiscardHandler), name: "gitea", namespace: "gitea", chart: ch, complete: asRendered,
		config: &action.Configuration{Releases: storage.Init(memory), Capabilities: chartutil.DefaultCapabilities, Log: func(string, ...any) {}},
	}
	require.NoError(t, r.config.Releases.Create(&release.Release{
		Name: "gitea", Namespace: "gitea", Version: 1, Chart: ch, Info: &release.Info{Status: release.StatusDeployed},
	}))
	r.config.KubeClient = &helmkube.PrintingKubeClient{Out: io.Discard}
	_, err := r.converge(t.Context())
	refused(t, err, contract.CodeUnusable, "render the chart gitea: ", "no host")

	r.config.KubeClient = awayCluster{&helmkube.PrintingKubeClient{Out: io.Discard}}
	_, err = r.converge(t.Context())
	refused(t, err, CodeRelease, "plan the upgrade of the chart gitea: the cluster: connection refused")
}

// awayCluster is Helm's client of a cluster that does not answer.
type awayCluster struct{ *helmkube.PrintingKubeClient }

func (awayCluster) IsReachable() error { return fmt.Errorf("the cluster: %w", syscall.ECONNREFUSED) }

func TestRecordsInTheWayAreFound(t *testing.T) {
	rel := func(version int, status release.Status) *release.Release {
		return &release.Release{Version: version, Info: &release.Info{Status: status}}
	}
	versions := func(list []*release.Release) (out []int) {
		for _, r := range list {
			out = append(out, r.Version)
		}
		return out
	}
	deployed, stale := sortHistory([]*release.Release{rel(1, release.StatusPendingInstall)})
	require.Nil(t, deployed)
	require.Equal(t, []int{1}, versions(stale), "a killed install")

	deployed, stale = sortHistory([]*release.Release{rel(1, release.StatusSuperseded), rel(2, release.StatusDeployed), rel(3, release.StatusFailed), rel(4, release.StatusPendingUpgrade)})
	require.Equal(t, 2, deployed.Version)
	require.Equal(t, []int{4, 3}, versions(stale), "a killed upgrade after a failed one")

	deployed, stale = sortHistory([]*release.Release{rel(1, release.StatusFailed), rel(2, release.StatusPendingUpgrade)})
	require.Nil(t, deployed)
	require.Equal(t, []int{2, 1}, versions(stale))
}

// TestAHookHasTheStepsTime: Helm bounds each by itself, by five minutes unless it is told.
func TestAHookHasTheStepsTime(t *testing.T) {
	require.Equal(t, hookLimit, timeLeft(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	require.InDelta(t, time.Hour, timeLeft(ctx), float64(time.Minute))
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
	api := kubetest.Serve(t)
	client, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer = &api.URL
	config := &action.Configuration{
		Releases: storage.Init(driver.NewMemory()), KubeClient: &helmkube.PrintingKubeClient{Out: io.Discard},
		RESTClientGetter: flags, Capabilities: chartutil.DefaultCapabilities, Log: func(string, ...any) {},
	}
	r := &chartRelease{
		client: client, log: slog.New(slog.DiscardHandler), name: "gitea", namespace: "git", config: config,
		complete: func(context.Context, *bytes.Buffer) (*bytes.Buffer, error) {
			t.Error("the step has ended")
			return nil, errors.New("the step has ended")
		},
		chart: &chart.Chart{
			Metadata:  &chart.Metadata{Name: "gitea", Version: "1.0.0"},
			Templates: []*chart.File{{Name: "templates/gitea.yaml", Data: []byte("{{ range until 2000 }}{{ range until 2000 }}{{ end }}{{ end }}{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}}")}},
		},
	}
	for name, work := range map[string]func(context.Context) error{
		"install": func(ctx context.Context) error {
			_, err := r.converge(ctx)
			return err
		},
		"plan": func(ctx context.Context) error {
			_, err := r.plan(ctx)
			return err
		},
	} {
		interrupt := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(interrupt) })
		require.ErrorIs(t, work(ctx), interrupt, name)
	}
	time.Sleep(time.Second) // the templates end meanwhile
	records, err := config.Releases.ListReleases()
	require.NoError(t, err)
	require.Empty(t, records)
}

// TestAChartAsksNoNameServer: neither in an install, nor in an upgrade, nor in the plan of either.
func TestAChartAsksNoNameServer(t *testing.T) {
	api := kubetest.Serve(t)
	client, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer = &api.URL
	manifest := "{apiVersion: v1, kind: ConfigMap, metadata: {name: gitea}, data: {address: '%s<{{ getHostByName \"localhost\" }}>'}}"
	rendered := 0
	r := &chartRelease{
		client: client, log: slog.New(slog.DiscardHandler), name: "gitea", namespace: "git",
		chart: &chart.Chart{Metadata: &chart.Metadata{Name: "gitea", Version: "1.0.0"}},
		config: &action.Configuration{
			Releases: storage.Init(driver.NewMemory()), KubeClient: &helmkube.PrintingKubeClient{Out: io.Discard},
			RESTClientGetter: flags, Capabilities: chartutil.DefaultCapabilities, Log: func(string, ...any) {},
		},
		complete: func(_ context.Context, b *bytes.Buffer) (*bytes.Buffer, error) {
			require.Contains(t, b.String(), "<>")
			rendered++
			return b, nil
		},
		others: func(context.Context, []kube.Member) ([]kube.Member, error) { return nil, nil },
	}
	for _, revision := range []string{"first", "second"} {
		r.chart.Templates = []*chart.File{{Name: "templates/gitea.yaml", Data: fmt.Appendf(nil, manifest, revision)}}
		r.client = planned(t, client, new(plan.Plan).Of("orchestrator/gitea"))
		_, err := r.plan(t.Context())
		require.NoError(t, err)
		r.client = client
		_, err = r.converge(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, 5, rendered, "two plans, an install, an upgrade and its trial")
}
