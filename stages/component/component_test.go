package component

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

// fixture is a cluster whose controllers do at once what is wanted, and the environment of a
// step with a platform release.
type fixture struct {
	api   *kubetest.API
	env   *step.Env
	shown bytes.Buffer
}

// newFixture has a release with these components, "- name: …", and files.
func newFixture(t *testing.T, components string, files map[string]string) *fixture {
	t.Helper()
	s := &fixture{api: kubetest.Serve(t)}
	s.api.Controller = func(path string, o map[string]any) {
		switch {
		case strings.Contains(path, "/deployments/"):
			o["status"] = map[string]any{"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
		case strings.Contains(path, "/jobs/"):
			o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
		}
	}
	s.api.Set(t, "/api/v1/namespaces/slipway-system/secrets/slipway-salt", "data: {salt: c2FsdA==}")
	s.env = step.NewEnv("r1", "orchestrator/test", step.Dirs{State: t.TempDir(), Platform: t.TempDir(), Bundle: t.TempDir()}, io.Discard, &s.shown)
	s.env.Deployment = "demo"
	require.NoError(t, os.MkdirAll(filepath.Dir(s.env.Kubeconfig), 0o700))
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, s.api.URL)
	require.NoError(t, os.WriteFile(s.env.Kubeconfig, []byte(text), 0o600))
	s.release(t, components, files)
	return s
}

// release replaces the platform release. Below "bundle/" are files of the bundle's manifests.
func (s *fixture) release(t *testing.T, components string, files map[string]string) {
	t.Helper()
	for _, dir := range []string{s.env.PlatformDir, s.env.BundleDir} {
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	all := map[string]string{platform.File: `apiVersion: slipway/v2
name: sample
version: 1.0.0
namespaces: [{name: shop}]
secrets: [{name: generated, namespace: shop, keys: [{key: password, generate: password}]}]
configMaps: [{name: settings, namespace: shop, data: {domain: "{domain}"}}]
certificates: [{secret: shop/cert, hosts: ["shop.{domain}"]}]
components:
` + components}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		file := filepath.Join(s.env.PlatformDir, name)
		if rest, ok := strings.CutPrefix(name, "bundle/"); ok {
			file = filepath.Join(s.env.BundleDir, "manifests", rest)
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	_, err := platform.Load(os.DirFS(s.env.PlatformDir))
	require.NoError(t, err)
}

// install runs the step of a component.
func (s *fixture) install(ctx context.Context, in contract.ComponentInput) (contract.Component, error) {
	return run(ctx, s.env, in)
}

// verify has an earlier result verified.
func (s *fixture) verify(ctx context.Context, in contract.ComponentInput) (contract.Component, error) {
	return step.Unchanged(run)(ctx, s.env, in)
}

// atStatus shows how far the install is.
const atStatus = "/api/v1/namespaces/slipway-system/configmaps/slipway-status"

// writes are those that have changed something but how far the install is.
func (s *fixture) writes() []string {
	return slices.DeleteFunc(s.api.Writes(), func(w string) bool { return strings.HasSuffix(w, atStatus) })
}

// held fails the test unless the step would change nothing.
func (s *fixture) held(t *testing.T, in contract.ComponentInput) {
	t.Helper()
	before, shown := len(s.writes()), s.api.Get(atStatus)
	_, err := s.verify(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, shown, s.api.Get(atStatus))
	out, err := s.install(t.Context(), in)
	require.NoError(t, err)
	require.Zero(t, out.Changed)
	require.Len(t, s.writes(), before)
}

// listed are the objects in the list of a component.
func (s *fixture) listed(t *testing.T, component string) []string {
	t.Helper()
	c, err := kube.Connect(s.env.Kubeconfig, nil)
	require.NoError(t, err)
	members, err := c.Members(t.Context(), kube.ObjectsOf(component))
	require.NoError(t, err)
	var out []string
	for _, m := range members {
		out = append(out, m.String())
	}
	return out
}

// at is a field of an object in the cluster.
func (s *fixture) at(path string, fields ...string) any {
	var v any = s.api.Get(path)
	for _, f := range fields {
		m, _ := v.(map[string]any)
		v = m[f]
	}
	return v
}

const (
	atWeb      = "/apis/apps/v1/namespaces/shop/deployments/web"
	atPage     = "/api/v1/namespaces/shop/configmaps/page"
	webYAML    = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {app: web}}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: \"docker.io/library/nginx:1\"}]}}}}\n"
	pageYAML   = "{apiVersion: v1, kind: ConfigMap, metadata: {name: page}, data: {index: hello}}\n"
	webRelease = `
  - name: web
    kind: manifests
    path: web
    namespace: shop
    images: [nginx]
    ready: [{cel: {object: apps/v1/Deployment shop/web, expression: object.status.availableReplicas >= 1}}]
`
)

func webInput() contract.ComponentInput {
	return contract.ComponentInput{Component: "web", Images: map[string]string{"nginx": "slipway.local/nginx@sha256:00", "docker.io/library/nginx:1": "slipway.local/nginx@sha256:00"}}
}

// On a cluster of others an image is named where that cluster finds it; on Slipway's own,
// which maps references, as the release names it.
func TestReferencesAreRewrittenWhereTheClusterDoesNotMapThem(t *testing.T) {
	const release = "\n  - {name: web, kind: manifests, path: web, namespace: shop, images: [\"nginx:1\"]}\n"
	image := func(s *fixture) any {
		return s.at(atWeb, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"]
	}
	s := newFixture(t, release, map[string]string{"web/web.yaml": webYAML})
	in := contract.ComponentInput{Component: "web"}
	_, err := s.install(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, "docker.io/library/nginx:1", image(s))
	s.held(t, in)

	in.Rewrite = map[string]string{"docker.io/library/nginx:1": "registry.example.com/nginx@sha256:00"}
	_, err = s.install(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, "registry.example.com/nginx@sha256:00", image(s))
	s.held(t, in)

	in.PullSecret = true
	_, err = s.install(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"name": kube.PullSecret}}, s.at(atWeb, "spec", "template", "spec", "imagePullSecrets"))
	s.held(t, in)
	in.PullSecret = false

	in.Rewrite = map[string]string{"docker.io/library/redis:8": "registry.example.com/redis@sha256:00"}
	_, err = s.install(t.Context(), in)
	require.NoError(t, err, "missing images are found before a run, where the cluster may be let pull them")
	require.Equal(t, "docker.io/library/nginx:1", image(s))
}

func TestFilesAreInstalledAndTheirGatesAwaited(t *testing.T) {
	s := newFixture(t, webRelease, map[string]string{"web/web.yaml": webYAML, "web/page.yaml": pageYAML})
	out, err := s.install(t.Context(), webInput())
	require.NoError(t, err)
	require.Equal(t, contract.Component{
		Objects: 2, Changed: 2, Workloads: []string{"Deployment/web"},
		Gates: []string{"object.status.availableReplicas >= 1 of apps/v1/Deployment shop/web"},
	}, out)
	require.Equal(t, map[string]any{"app": "web", kube.ManagedBy: "slipway", kube.DeploymentLabel: "demo"}, s.at(atWeb, "metadata", "labels"))
	require.Equal(t, map[string]any{"index": "hello"}, s.at(atPage, "data"))
	container := s.at(atWeb, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)
	require.Equal(t, "slipway.local/nginx@sha256:00", container["image"])
	require.Contains(t, s.shown.String(), "orchestrator/test: waiting for object.status.availableReplicas >= 1 of ")
	s.held(t, webInput())

	s.api.Set(t, atPage, "data: {index: edited}")
	_, err = s.verify(t.Context(), webInput())
	require.ErrorIs(t, err, plan.ErrChange)
	out, err = s.install(t.Context(), webInput())
	require.NoError(t, err)
	require.Equal(t, 1, out.Changed)
	require.Equal(t, map[string]any{"index": "hello"}, s.at(atPage, "data"))

	for _, replicas := range []string{"0", "3"} {
		s.api.Set(t, atWeb, "spec: {replicas: "+replicas+"}")
		_, err = s.verify(t.Context(), webInput())
		require.ErrorIs(t, err, plan.ErrChange)
		out, err = s.install(t.Context(), webInput())
		require.NoError(t, err)
		require.Equal(t, 1, out.Changed)
		require.EqualValues(t, 1, s.at(atWeb, "spec", "replicas"))
	}
	require.Contains(t, s.shown.String(), "scaled to 1 again, as the manifest leaves the number of replicas out: Deployment shop/web")

	s.release(t, webRelease, map[string]string{"web/web.yaml": webYAML})
	out, err = s.install(t.Context(), webInput())
	require.NoError(t, err)
	require.Equal(t, 1, out.Changed)
	require.Nil(t, s.api.Get(atPage), "what the release has no more goes")
	require.Contains(t, s.shown.String(), "deleted objects that the release no longer has: ConfigMap shop/page")
	s.held(t, webInput())
}

// TestWhatIsMadeBesidesComponentsStays: an object that a component had, and that the release
// makes before components now.
func TestWhatIsMadeBesidesComponentsStays(t *testing.T) {
	const atSettings = "/api/v1/namespaces/shop/configmaps/settings"
	settings := strings.Replace(pageYAML, "name: page", "name: settings", 1)
	s := newFixture(t, webRelease, map[string]string{"web/web.yaml": webYAML, "web/settings.yaml": settings})
	_, err := s.install(t.Context(), webInput())
	require.NoError(t, err)
	require.NotNil(t, s.api.Get(atSettings))
	s.release(t, webRelease, map[string]string{"web/web.yaml": webYAML})
	_, err = s.install(t.Context(), webInput())
	require.NoError(t, err)
	require.NotNil(t, s.api.Get(atSettings), "it is among configMaps")
}

// TestWhatAnotherOwnerHasStays: another component of the release, or an app.
func TestWhatAnotherOwnerHasStays(t *testing.T) {
	const (
		atApp  = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/page"
		atRole = "/apis/rbac.authorization.k8s.io/v1/clusterroles/reader"
		role   = "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}}\n"
	)
	components := webRelease + "  - {name: page, kind: manifests, path: page.yaml, namespace: shop}\n"
	files := map[string]string{"web/web.yaml": webYAML, "web/page.yaml": pageYAML + role, "page.yaml": pageYAML + role}
	s := newFixture(t, components, files)
	s.api.Define("argoproj.io/v1alpha1", "Application", true)
	s.api.Define("rbac.authorization.k8s.io/v1", "ClusterRole", false)
	_, err := s.install(t.Context(), webInput())
	require.NoError(t, err)
	_, err = s.install(t.Context(), contract.ComponentInput{Component: "page"})
	require.NoError(t, err)
	delete(files, "web/page.yaml")
	s.release(t, components, files)
	out, err := s.install(t.Context(), webInput())
	require.NoError(t, err)
	require.Zero(t, out.Changed)
	require.NotNil(t, s.api.Get(atPage), "the component page has it")
	require.NotNil(t, s.api.Get(atRole), "the component page has it")
	s.held(t, webInput())

	s.api.Set(t, atApp, "{metadata: {name: page, namespace: argocd}, status: {resources: [{kind: ConfigMap, namespace: shop, name: page}, {group: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}]}}")
	for path, id := range map[string]string{atPage: "page:/ConfigMap:shop/page", atRole: "page:rbac.authorization.k8s.io/ClusterRole:shop/reader"} {
		s.api.Set(t, path, "metadata: {annotations: {"+kube.TrackingID+": '"+id+"'}}")
	}
	s.release(t, components, map[string]string{"web/web.yaml": webYAML, "page.yaml": strings.ReplaceAll(pageYAML, "name: page", "name: other")})
	_, err = s.install(t.Context(), contract.ComponentInput{Component: "page"})
	require.NoError(t, err)
	require.NotNil(t, s.api.Get(atPage), "an app has it")
	require.NotNil(t, s.api.Get(atRole), "an app has it")
}

func TestTheBundlesObjectsArePatchedByTheRelease(t *testing.T) {
	s := newFixture(t, "  - {name: web, kind: manifests, bundle: product, path: patches, namespace: shop, images: [nginx]}\n", map[string]string{
		"bundle/product/install.yaml": webYAML + "---\n" + pageYAML,
		"patches/a.yaml":              "{apiVersion: v1, kind: ConfigMap, metadata: {name: page}, data: {index: ours}}\n",
	})
	out, err := s.install(t.Context(), webInput())
	require.NoError(t, err)
	require.Equal(t, 2, out.Objects)
	require.Equal(t, map[string]any{"index": "ours"}, s.at(atPage, "data"))
	s.held(t, webInput())
}

func TestWhatCannotBeInstalled(t *testing.T) {
	s := newFixture(t, `
  - {name: web, kind: manifests, path: web, namespace: shop, images: [nginx]}
  - {name: broken, kind: manifests, path: broken, namespace: shop}
  - {name: empty, kind: manifests, path: empty.yaml, namespace: shop}
  - {name: unknown, kind: manifests, path: unknown.yaml, namespace: shop}
  - {name: product, kind: manifests, bundle: product, namespace: shop}
  - {name: jobless, kind: job, path: web, namespace: shop}
  - {name: chart, kind: chart, path: chart, namespace: shop, images: [nginx], values: {image: "{images.nginx}"}}
`, map[string]string{
		"web/web.yaml": webYAML, "broken/a.yaml": "a: 1\na: 2\n", "empty.yaml": "# nothing\n", "chart/Chart.yaml": "apiVersion: v2\n",
		"unknown.yaml": "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}",
	})
	const bundleFix = "correct the platform release, or build the bundle again (make bundle), then run the same command again"
	const releaseFix = "correct the platform release, then run the same command again"
	refs := webInput().Images
	for name, c := range map[string]struct {
		images    map[string]string
		code      fault.Code
		says, fix string
	}{
		"web":     {nil, contract.CodeNoImage, "find the image nginx: neither the bundle nor the registry has an image named nginx", "build a bundle for the platform release, whose directory is DIR: make bundle PLATFORM=DIR"},
		"chart":   {nil, contract.CodeNoImage, "find the image nginx: ", "build a bundle for the platform release, whose directory is DIR: make bundle PLATFORM=DIR"},
		"broken":  {refs, contract.CodeUnusable, "read the manifests of component broken: the platform release: decode broken/a.yaml: ", releaseFix},
		"empty":   {refs, contract.CodeUnusable, "read the manifests of component empty: its files hold no object", releaseFix},
		"product": {refs, contract.CodeUnusable, "read the manifests of component product: the bundle: ", bundleFix},
		"jobless": {refs, contract.CodeUnusable, "read the manifests of component jobless: its files hold no Job", releaseFix},
		"unknown": {refs, kube.CodeRejected, "apply Widget shop/w: ", "correct the manifest, then run the same command again"},
	} {
		_, err := s.install(t.Context(), contract.ComponentInput{Component: name, Images: c.images})
		refused(t, err, c.code, c.says)
		f := new(fault.Fault)
		require.ErrorAs(t, err, &f)
		require.Equal(t, c.fix, f.Fix, name)
	}
	_, err := s.install(t.Context(), contract.ComponentInput{Component: "chart", Images: refs})
	refused(t, err, contract.CodeUnusable, "render the chart chart: ")
	_, err = s.install(t.Context(), contract.ComponentInput{Component: "nobody"})
	require.EqualError(t, err, "platform sample 1.0.0 has no component nobody")
}
