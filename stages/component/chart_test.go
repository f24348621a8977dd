package component

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// valuesRelease has a component of kind chart with values from everywhere.
const valuesRelease = `
  - name: web
    kind: chart
    path: chart
    namespace: shop
    images: [nginx]
    hosts: {"git.{domain}": shop/git}
    valuesFiles: [values/all.yaml, "values/{scale}.yaml"]
    values: {images: {web: "{images.nginx}"}, host: "web.{domain}", size: "{settings.size}", from: release, nested: {b: release}}
`

// installer is that of a component of the fixture's release, without its step.
func (s *fixture) installer(t *testing.T, in contract.ComponentInput) *installer {
	t.Helper()
	r, err := platform.Load(os.DirFS(s.env.PlatformDir))
	require.NoError(t, err)
	c, ok := r.Component(in.Component)
	require.True(t, ok)
	client, err := kube.Connect(s.env.Kubeconfig, nil)
	require.NoError(t, err)
	return &installer{env: s.env, client: client, release: r, component: c, in: in}
}

func planned(t *testing.T, c *kube.Client, p *plan.Step) *kube.Client {
	t.Helper()
	out, err := c.Planned(p)
	require.NoError(t, err)
	return out
}

func valuesFiles() map[string]string {
	out := map[string]string{
		"chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"values/all.yaml":  "{from: all, replicas: 1, nested: {a: all, b: all, c: all}}",
	}
	for _, scale := range []string{"50", "100", "500", "1000"} {
		out["values/"+scale+".yaml"] = "{from: scale, replicas: " + scale + ", nested: {c: scale}}"
	}
	return out
}

func valuesInput() contract.ComponentInput {
	return contract.ComponentInput{
		Component: "web", Images: map[string]string{"nginx": "slipway.local/nginx@sha256:00", "docker.io/library/nginx:1": "slipway.local/nginx@sha256:00"}, Hosts: map[string]string{"git.example.org": "shop/git"},
		Fill: map[string]any{"images.nginx": "slipway.local/nginx@sha256:00", "domain": "example.org", "scale": "100", "settings.size": 7},
	}
}

func valuesOf(i *installer) (map[string]any, error) {
	return render.Values(i.release.Files(), i.component, i.in)
}

// TestValuesOfAChart: the user's win over the release's, those over its files, and a later
// file over an earlier one.
func TestValuesOfAChart(t *testing.T) {
	s := newFixture(t, valuesRelease, valuesFiles())
	values, err := valuesOf(s.installer(t, valuesInput()))
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"images": map[string]any{"web": "slipway.local/nginx@sha256:00"}, "host": "web.example.org", "size": 7,
		"from": "release", "replicas": 100.0, "nested": map[string]any{"a": "all", "b": "release", "c": "scale"},
	}, values)

	in := valuesInput()
	in.Values = []byte(`{"from": "user", "nested": {"b": "user", "d": "user"}, "more": true}`)
	values, err = valuesOf(s.installer(t, in))
	require.NoError(t, err)
	require.Equal(t, "user", values["from"])
	require.Equal(t, true, values["more"])
	require.Equal(t, map[string]any{"a": "all", "b": "user", "c": "scale", "d": "user"}, values["nested"])
	require.Equal(t, "web.example.org", values["host"])
}

func TestValuesThatCannotBeFilledIn(t *testing.T) {
	s := newFixture(t, valuesRelease, valuesFiles())
	for says, change := range map[string]func(*contract.ComponentInput){
		"nothing is known for {settings.size}":   func(in *contract.ComponentInput) { delete(in.Fill, "settings.size") },
		"open values/7.yaml: no such file":       func(in *contract.ComponentInput) { in.Fill["scale"] = "7" },
		"read the values of the configuration: ": func(in *contract.ComponentInput) { in.Values = []byte("[]") },
	} {
		in := valuesInput()
		change(&in)
		_, err := s.install(t.Context(), in)
		refused(t, err, contract.CodeUnusable, "render the chart web: ", says)
	}
	files := valuesFiles()
	files["values/100.yaml"] = "a: [\n"
	s.release(t, valuesRelease, files)
	_, err := s.install(t.Context(), valuesInput())
	refused(t, err, contract.CodeUnusable, "render the chart web: read values/100.yaml: ")
	delete(files, "chart/Chart.yaml")
	files["chart/Chart.yaml"] = "nonsense"
	s.release(t, valuesRelease, files)
	_, err = s.install(t.Context(), valuesInput())
	refused(t, err, contract.CodeUnusable, "render the chart web: ")
	f := new(fault.Fault)
	require.ErrorAs(t, err, &f)
	require.Equal(t, "correct the chart in the platform release, then run the same command again", f.Fix)
}

// TestWhatAChartRendersToIsCompleted: Helm knows nothing of what the release says of pods.
func TestWhatAChartRendersToIsCompleted(t *testing.T) {
	s := newFixture(t, valuesRelease, valuesFiles())
	s.api.Set(t, "/api/v1/namespaces/shop/services/git", "spec: {clusterIP: 10.96.0.7}")
	s.api.Set(t, "/api/v1/namespaces/shop/secrets/generated", "data: {password: YQ==}")
	i := s.installer(t, valuesInput())
	parts, err := i.parts(t.Context(), `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app.kubernetes.io/managed-by: Helm}}
spec:
  replicas: 2
  template:
    spec:
      containers: [{name: web, image: "docker.io/library/nginx:1", envFrom: [{secretRef: {name: generated}}]}]
---
# Source: web/templates/empty.yaml
---
{apiVersion: v1, kind: Namespace, metadata: {name: extra}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: pre-install}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "docker.io/library/nginx:1"}]}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: try, annotations: {helm.sh/hook: test}}}
`)
	require.NoError(t, err)
	require.Len(t, parts.Objects, 2)
	extra, web := parts.Objects[0], parts.Objects[1]
	require.Equal(t, map[string]string{"app.kubernetes.io/managed-by": "Helm", kube.DeploymentLabel: "demo"}, web.GetLabels(), "the chart's own label stays")
	require.Equal(t, "shop", web.GetNamespace())
	require.Empty(t, extra.GetNamespace())
	out, err := yaml.Marshal(web.Object)
	require.NoError(t, err)
	for _, text := range []string{"image: slipway.local/nginx@sha256:00", "ip: 10.96.0.7", "- git.example.org", "slipway.sh/config: ", "replicas: 2"} {
		require.Contains(t, string(out), text)
	}
	require.Len(t, parts.Hooks, 1, "tests are no hooks of an install")
	job := parts.Hooks[0].Objects[0]
	require.Equal(t, "shop", job.GetNamespace())
	require.Equal(t, "demo", job.GetLabels()[kube.DeploymentLabel], "by which it is found")
	out, err = yaml.Marshal(job.Object)
	require.NoError(t, err)
	require.Contains(t, string(out), "image: slipway.local/nginx@sha256:00")
	_, err = i.parts(t.Context(), "kind: X")
	refused(t, err, contract.CodeUnusable, "document 1: ")
	_, err = i.parts(t.Context(), "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: web-, namespace: shop}}")
	refused(t, err, contract.CodeUnusable, "metadata.name is missing")
}

// TestTheCRDsOfAChart are made and changed; Helm would only make them.
func TestTheCRDsOfAChart(t *testing.T) {
	const at = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
	s := newFixture(t, valuesRelease, valuesFiles())
	s.api.Controller = func(_ string, o map[string]any) {
		o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	}
	of := func(version string) *chart.Chart {
		text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec: {group: example.com, scope: Namespaced, names: {kind: Widget}, versions: [{name: " + version + "}]}\n"
		return &chart.Chart{Metadata: &chart.Metadata{Name: "web"}, Files: []*chart.File{{Name: "crds/widgets.yaml", Data: []byte(text)}}}
	}
	i := s.installer(t, valuesInput())
	p, client := plan.Verify("web"), i.client
	i.client = planned(t, client, p)
	_, err := i.crds(t.Context(), of("v1"))
	require.NoError(t, err)
	require.ErrorIs(t, p.Err(), plan.ErrChange)
	i.client = client
	for n, c := range []struct {
		version string
		altered int
	}{{"v1", 1}, {"v1", 0}, {"v2", 1}} {
		altered, err := i.crds(t.Context(), of(c.version))
		require.NoError(t, err)
		require.Equal(t, c.altered, altered, n)
	}
	require.Equal(t, []any{map[string]any{"name": "v2"}}, s.at(at, "spec", "versions"))
	require.Equal(t, "demo", s.at(at, "metadata", "labels", kube.DeploymentLabel))
	none, err := i.crds(t.Context(), &chart.Chart{Metadata: &chart.Metadata{Name: "web"}})
	require.NoError(t, err)
	require.Zero(t, none)
	_, err = i.crds(t.Context(), &chart.Chart{Metadata: &chart.Metadata{Name: "web"}, Files: []*chart.File{{Name: "crds/x.yaml", Data: []byte("kind: X")}}})
	refused(t, err, contract.CodeUnusable, "render the chart web: decode ")
}
