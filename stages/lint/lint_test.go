package lint_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/lint"
)

const pod = "{containers: [{name: a, image: %s}]}"

func deployment(name, image string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + "}\nspec: {template: {spec: " + strings.ReplaceAll(pod, "%s", image) + "}}\n"
}

// ownNamespace finds the namespaces of components whose objects have the names of others.
var ownNamespace = regexp.MustCompile(`namespace: (shop-\w+)`)

// load is a release with these components, "- {name: …}", and files.
func load(t *testing.T, components string, files map[string]string) *platform.Release {
	t.Helper()
	namespaces := "{name: shop}, {name: argocd}"
	for _, m := range ownNamespace.FindAllStringSubmatch(components, -1) {
		namespaces += ", {name: " + m[1] + "}"
	}
	all := fstest.MapFS{platform.File: {Data: []byte("apiVersion: slipway/v2\nname: sample\nversion: 1.0.0\nnamespaces: [" + namespaces + "]\n" + components)}}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	r, err := platform.Load(all)
	require.NoError(t, err)
	return r
}

// found renders what is found as "component file: image", with what nobody rewrites in
// parentheses, and what is not, with where the release is wrong in parentheses.
func found(t *testing.T, r *platform.Release, s contract.RenderInput, tree lint.BuildTree) (uses, unread []string) {
	t.Helper()
	s.Kubernetes = "1.35.4"
	has, err := lint.Contents(t.Context(), r, s, tree, nil)
	require.NoError(t, err)
	for _, u := range has.Images {
		if u.Kept {
			u.Image = "(" + u.Image + ")"
		}
		uses = append(uses, u.Component+" "+u.File+": "+u.Image)
	}
	for _, u := range has.Unread {
		at := ""
		if u.Wrong() {
			at = " (" + u.Position() + ")"
		}
		unread = append(unread, u.Component+at+": "+u.Err.Error())
	}
	return uses, unread
}

// A chart as the public has them: with a dependency, hooks, images by default and by
// values, and what it only makes for a new enough cluster that has a kind.
var publicChart = map[string]string{
	"charts/web/Chart.yaml":                    "{apiVersion: v2, name: public-web, version: 1.0.0, kubeVersion: '>=1.33.0-0'}",
	"charts/web/values.yaml":                   "{image: {repository: docker.io/library/nginx, tag: '1.29'}, sidecar: quay.io/team/sidecar:1, side: {enabled: true}}",
	"charts/web/templates/web.yaml":            deployment("web", "\"{{ .Values.image.repository }}:{{ .Values.image.tag }}\"") + "---\n" + deployment("side", "{{ .Values.sidecar }}"),
	"charts/web/templates/named.yaml":          deployment("named", "{{ .Values.named }}"),
	"charts/web/templates/hook.yaml":           "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}}\nspec: {template: {spec: {containers: [{name: a, image: quay.io/team/migrate:1}]}}}\n",
	"charts/web/templates/tests/t.yaml":        "apiVersion: v1\nkind: Pod\nmetadata: {name: test, annotations: {helm.sh/hook: test}}\nspec: {containers: [{name: a, image: busybox}]}\n",
	"charts/web/templates/off.yaml":            "{{ if .Values.extra }}\n" + deployment("extra", "quay.io/team/extra:1") + "{{ end }}",
	"charts/web/templates/NOTES.txt":           "image: quay.io/team/notes:1",
	"charts/web/charts/sub/Chart.yaml":         "{apiVersion: v2, name: sub, version: 1.0.0}",
	"charts/web/charts/sub/templates/sub.yaml": deployment("sub", "registry.k8s.io/sub@sha256:"+strings.Repeat("1", 64)),
}

func TestAChartsImages(t *testing.T) {
	r := load(t, "components: [{name: web, kind: chart, path: charts/web, namespace: shop, images: [redis], values: {named: '{images.redis}', other: '{images.unknown}'}}]\n", publicChart)
	in := contract.ComponentInput{
		Component: "web", Fill: map[string]any{"images.redis": "slipway.local/redis@sha256:abababababababababababababababababababababababababababababababab"}, Images: map[string]string{"redis": "slipway.local/redis@sha256:abababababababababababababababababababababababababababababababab"},
		Values: json.RawMessage(`{"image":{"tag":"1.30"}}`),
	}
	want := []string{
		"web charts/web/charts/sub/templates/sub.yaml: registry.k8s.io/sub@sha256:" + strings.Repeat("1", 64),
		"web charts/web/templates/hook.yaml: (quay.io/team/migrate:1)",
		"web charts/web/templates/named.yaml: slipway.local/redis@sha256:abababababababababababababababababababababababababababababababab",
		"web charts/web/templates/web.yaml: docker.io/library/nginx:1.30",
		"web charts/web/templates/web.yaml: quay.io/team/sidecar:1",
		"web platform.yaml: redis",
	}
	uses, unread := found(t, r, contract.RenderInput{Components: []contract.ComponentInput{in}}, nil)
	require.Empty(t, unread)
	require.Equal(t, want, uses, "tests are not run, nor what is off")

	in.Fill, in.Images = nil, nil
	uses, unread = found(t, r, contract.RenderInput{Components: []contract.ComponentInput{in}}, nil)
	require.Empty(t, unread, "a short name that is not known keeps nothing else from being found")
	require.Equal(t, append(append([]string{}, want[:2]...), want[3:]...), uses)
}

// TestAnAdoptedChartsImages: Argo CD applies it in the end, and replaces no reference.
func TestAnAdoptedChartsImages(t *testing.T) {
	r := load(t, `components:
  - {name: argocd, kind: manifests, path: argocd.yaml, namespace: argocd, required: true}
  - {name: eso, kind: adopted, path: gitops/eso, namespace: shop, images: [redis], values: {named: "{images.redis}"}}
gitops: {engine: argocd}
`, map[string]string{
		"argocd.yaml":                   deployment("a", "argocd"),
		"gitops/eso/Chart.yaml":         "{apiVersion: v2, name: eso, version: 1.0.0}",
		"gitops/eso/templates/eso.yaml": deployment("eso", "quay.io/team/eso:1") + "---\n" + deployment("named", "{{ .Values.named }}"),
	})
	in := contract.ComponentInput{
		Component: "eso", Fill: map[string]any{"images.redis": "slipway.local/redis@sha256:abababababababababababababababababababababababababababababababab"}, Images: map[string]string{"redis": "slipway.local/redis@sha256:abababababababababababababababababababababababababababababababab"},
		Rewrite: map[string]string{"quay.io/team/eso:1": "registry/eso@sha256:abababababababababababababababababababababababababababababababab"},
	}
	uses, unread := found(t, r, contract.RenderInput{Components: []contract.ComponentInput{in}}, nil)
	require.Empty(t, unread)
	require.Equal(t, []string{
		"eso gitops/eso/templates/eso.yaml: (quay.io/team/eso:1)",
		"eso gitops/eso/templates/eso.yaml: (slipway.local/redis@sha256:abababababababababababababababababababababababababababababababab)",
		"eso platform.yaml: redis",
	}, uses)

	s := contract.RenderInput{Deployment: "demo", Kubernetes: "1.35.4", Components: []contract.ComponentInput{in}, Order: []string{"argocd", "eso"}}
	has, err := lint.Contents(t.Context(), r, s, nil, nil)
	require.NoError(t, err)
	shown := slices.DeleteFunc(has.Rendered, func(r contract.Rendered) bool { return r.Component != "eso" })
	require.Len(t, shown, 2, "each object once")
	for _, part := range shown {
		require.Equal(t, "adopted", part.Kind)
		require.NotContains(t, fmt.Sprint(part.Objects), "registry/eso")
	}
}

func TestManifestsImages(t *testing.T) {
	r := load(t, `components:
  - {name: web, kind: manifests, path: web, namespace: shop, images: [redis, "quay.io/team/operand:1"]}
  - {name: custom, kind: manifests, path: custom, namespace: shop}
  - {name: argocd, kind: manifests, bundle: argocd, path: argo, namespace: argocd}
  - {name: once, kind: job, path: once.yaml, namespace: shop}
  - {name: open, kind: gate, ready: [{http: {service: "shop/web:80"}}]}
`, map[string]string{
		"web/a.yaml":                deployment("a", "docker.io/library/nginx:1.29"),
		"web/b.yaml":                deployment("b", "public.ecr.aws/docker/library/redis:8"),
		"custom/kustomization.yaml": "resources: [x.yaml]\nimages: [{name: web, newName: quay.io/team/web, newTag: '2'}]\n",
		"custom/x.yaml":             deployment("x", "web"),
		"argo/patch.yaml":           deployment("repo", "quay.io/team/plugin:1"),
		"once.yaml":                 "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {initContainers: [{name: a, image: busybox}], containers: [{name: b, image: 'busybox:1.37'}]}}}}",
	})
	s := contract.RenderInput{Known: true}
	for _, c := range r.Components {
		s.Components = append(s.Components, contract.ComponentInput{Component: c.Name, Images: map[string]string{"redis": "slipway.local/redis@sha256:abababababababababababababababababababababababababababababababab", "public.ecr.aws/docker/library/redis:8": "slipway.local/redis@sha256:abababababababababababababababababababababababababababababababab"}})
	}
	want := []string{
		"argocd argo/patch.yaml: quay.io/team/plugin:1",
		"custom custom: quay.io/team/web:2",
		"once once.yaml: busybox",
		"once once.yaml: busybox:1.37",
		"web platform.yaml: (quay.io/team/operand:1)",
		"web platform.yaml: redis",
		"web web: slipway.local/redis@sha256:abababababababababababababababababababababababababababababababab",
		"web web/a.yaml: docker.io/library/nginx:1.29",
	}
	uses, unread := found(t, r, s, nil)
	require.Empty(t, unread)
	require.Equal(t, want, uses)

	s.Manifests = fstest.MapFS{"argocd/install.yaml": {Data: []byte(deployment("controller", "quay.io/argoproj/argocd:v3"))}}
	uses, unread = found(t, r, s, nil)
	require.Empty(t, unread)
	require.Contains(t, uses, "argocd argo: quay.io/argoproj/argocd:v3", "where the bundle's are at hand")
}

// TestWhatTheBundleDoesNotHave is wrong where the component names it.
func TestWhatTheBundleDoesNotHave(t *testing.T) {
	r := load(t, "components:\n  - name: web\n    kind: manifests\n    bundle: web\n    namespace: shop\n", nil)
	s := contract.RenderInput{Components: []contract.ComponentInput{{Component: "web"}}}
	_, unread := found(t, r, s, nil)
	require.Empty(t, unread, "which bundle is not known")
	s.Manifests = fstest.MapFS{"argocd/install.yaml": {Data: []byte(deployment("a", "nginx"))}}
	_, unread = found(t, r, s, nil)
	require.Len(t, unread, 1)
	require.Contains(t, unread[0], "web (platform.yaml, line 8): the bundle: ")
}

func TestWhatCannotBeRendered(t *testing.T) {
	r := load(t, `components:
  - {name: picky, kind: chart, path: charts/picky, namespace: shop}
  - {name: old, kind: chart, path: charts/old, namespace: shop}
  - {name: unset, kind: chart, path: charts/old, namespace: shop, values: {a: "{settings.a}"}}
  - {name: broken, kind: manifests, path: broken, namespace: shop}
  - {name: fine, kind: manifests, path: fine.yaml, namespace: shop}
`, map[string]string{
		"charts/picky/Chart.yaml":       "{apiVersion: v2, name: picky, version: 1.0.0}",
		"charts/picky/templates/a.yaml": "{{ required \"host is needed\" .Values.host }}",
		"charts/old/Chart.yaml":         "{apiVersion: v2, name: old, version: 1.0.0, kubeVersion: '<1.20.0'}",
		"charts/old/templates/a.yaml":   deployment("a", "nginx"),
		"broken/a.yaml":                 "{apiVersion: v1",
		"fine.yaml":                     deployment("a", "nginx"),
	})
	s := contract.RenderInput{}
	for _, c := range r.Components {
		s.Components = append(s.Components, contract.ComponentInput{Component: c.Name})
	}
	uses, unread := found(t, r, s, nil)
	require.Equal(t, []string{"fine fine.yaml: nginx"}, uses)
	require.Len(t, unread, 4)
	for n, says := range []string{
		"picky (charts/picky/templates/a.yaml, line 1): ", "old (charts/old): ", "unset (platform.yaml, line 8): nothing is known for {settings.a}", "broken (broken/a.yaml, line 1): ",
	} {
		require.Contains(t, unread[n], says)
	}
	require.Contains(t, unread[0], "host is needed")
	require.Contains(t, unread[1], "1.35.4")

	s.Guessed = true
	_, unread = found(t, r, s, nil)
	require.Contains(t, unread[0], "picky (", "it does not ask for the version")
	require.Contains(t, unread[1], "old: ", "the cluster may have another version")

	s.Off, s.Components = s.Components, nil
	_, unread = found(t, r, s, nil)
	require.Len(t, unread, 1, "who switches the charts on may give them other values")
	require.Contains(t, unread[0], "broken (broken/a.yaml, line 1): ")
}

// TestALibraryChart is for other charts: Helm refuses to install it.
func TestALibraryChart(t *testing.T) {
	r := load(t, "components:\n  - {name: parts, kind: chart, path: charts/parts, namespace: shop}\n", map[string]string{
		"charts/parts/Chart.yaml":       "{apiVersion: v2, name: parts, version: 1.0.0, type: library}",
		"charts/parts/templates/a.yaml": deployment("a", "nginx"),
	})
	uses, unread := found(t, r, contract.RenderInput{Components: []contract.ComponentInput{{Component: "parts"}}}, nil)
	require.Empty(t, uses)
	require.Equal(t, []string{"parts (charts/parts/Chart.yaml): type: got library, want application: Helm installs no library chart; make a chart that depends on it"}, unread)
}

// TestWhatOnlyAClusterKnows is no error of the release.
func TestWhatOnlyAClusterKnows(t *testing.T) {
	const hosts, failing = `{{ required "a host is needed" .Values.host }}`, `{{ fail "not here" }}`
	for what, c := range map[string]struct {
		template         string
		wrong, ifGuessed bool // with the cluster that Slipway runs itself, and with another one
	}{
		"nothing asked":                {hosts, true, true},
		"an object looked up":          {`{{ (lookup "v1" "Secret" "shop" "a").data.b }}`, false, false},
		"looked up afterwards":         {hosts + `{{ lookup "v1" "Secret" "shop" "a" }}`, false, false},
		"an API of somebody's":         {`{{ if not (.Capabilities.APIVersions.Has "example.com/v1") }}` + failing + `{{ end }}`, false, false},
		"an API of Kubernetes' own":    {`{{ if .Capabilities.APIVersions.Has "apps/v1" }}` + failing + `{{ end }}`, false, false},
		"an API that may be gone":      {`{{ if .Capabilities.APIVersions.Has "policy/v1beta1" }}` + failing + `{{ end }}`, false, false},
		"all APIs":                     {`{{ range .Capabilities.APIVersions }}` + failing + `{{ end }}`, false, false},
		"the version":                  {`{{ if semverCompare ">=1.30" .Capabilities.KubeVersion.Version }}` + failing + `{{ end }}`, false, false},
		"the version, as older do":     {`{{ if semverCompare ">=1.30" .Capabilities.KubeVersion.GitVersion }}` + failing + `{{ end }}`, false, false},
		"the version of Helm":          {`{{ if .Capabilities.HelmVersion.Version }}` + failing + `{{ end }}`, false, false},
		"a template that is no such":   {`{{ lookup "v1" "Secret" "shop" "a"`, true, true},
		"no YAML, whatever is there":   {`a: b: {{ .Values.host }}`, true, true},
		"no YAML, of what is there":    {`a: {{ lookup "v1" "Secret" "shop" "a" }}: b`, false, false},
		"no object, whatever is there": {`{a: b}`, true, true},
	} {
		t.Run(what, func(t *testing.T) {
			r := load(t, "components: [{name: web, kind: chart, path: web, namespace: shop}]\n", map[string]string{
				"web/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}", "web/templates/a.yaml": c.template,
			})
			for _, guessed := range []bool{false, true} {
				_, unread := found(t, r, contract.RenderInput{Components: []contract.ComponentInput{{Component: "web"}}, Guessed: guessed}, nil)
				require.Len(t, unread, 1)
				wrong := c.wrong
				if guessed {
					wrong = c.ifGuessed
				}
				require.Equal(t, wrong, strings.HasPrefix(unread[0], "web (web/templates/a.yaml"), unread[0])
			}
		})
	}
}

func TestTheImagesOfApps(t *testing.T) {
	r := load(t, `components:
  - {name: argocd, kind: manifests, bundle: argocd, namespace: argocd, required: true}
  - {name: web, kind: app, path: gitops/apps/web, namespace: shop, images: [redis, lost]}
  - {name: plain, kind: app, path: gitops/apps/plain, namespace: shop}
  - {name: nested, kind: app, path: gitops/apps/nested, namespace: shop}
gitops: {engine: argocd}
`, map[string]string{
		"gitops/apps/web/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}", "gitops/apps/plain/a.yaml": deployment("a", "nginx"),
		"gitops/apps/nested/a.yaml": deployment("a", "nginx"),
	})
	app := func(name, spec string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + "}\nspec: " + spec + "\n---\n"
	}
	tree := lint.Tree{Chart: "root", Values: "slipway.yaml", Files: map[string][]byte{}}
	for name, text := range map[string]string{
		"root/Chart.yaml":   "{apiVersion: v2, name: root, version: 1.0.0}",
		"root/slipway.yaml": "{tag: '7'}",
		"root/templates/apps.yaml": app("web", "{source: {path: apps/web, helm: {valueFiles: [more.yaml, /shared.yaml], values: 'c: three', valuesObject: {d: four, tag: {{ .Values.tag | quote }}}, parameters: [{name: e.f, value: five}]}}}") +
			app("plain", "{sources: [{path: apps/plain}]}") + app("nested", "{source: {path: apps/nested}}") +
			app("far", "{source: {repoURL: https://charts.example.com, chart: far, targetRevision: 1.0.0}}"),
		"apps/web/Chart.yaml":         "{apiVersion: v2, name: web, version: 1.0.0}",
		"apps/web/more.yaml":          "{a: one, b: one}",
		"apps/web/templates/web.yaml": deployment("web", "quay.io/{{ .Values.a }}/{{ .Values.b }}/{{ .Values.c }}/{{ .Values.d }}/{{ .Values.e.f }}:{{ .Values.tag }}"),
		"shared.yaml":                 "{b: two}",
		"apps/plain/a.yaml":           deployment("a", "nginx"),
		"apps/nested/b.yaml":          app("inner", "{source: {path: apps/inner}}"),
		"apps/inner/c.yaml":           deployment("c", "quay.io/team/inner:1"),
	} {
		tree.Files[name] = []byte(text)
	}
	var given contract.TreeValues
	build := func(_ *platform.Release, _ string, in contract.TreeValues) (lint.Tree, error) {
		given = in
		return tree, nil
	}
	s := contract.RenderInput{Apps: &contract.TreeValues{Images: map[string]string{"redis": "slipway.local/redis@sha256:abababababababababababababababababababababababababababababababab"}}}
	uses, unread := found(t, r, s, build)
	require.Equal(t, []string{
		"inner gitops/apps/inner/c.yaml: (quay.io/team/inner:1)",
		"plain gitops/apps/plain/a.yaml: (nginx)",
		"web gitops/apps/web/templates/web.yaml: (quay.io/one/two/three/four/five:7)",
		"web platform.yaml: lost",
		"web platform.yaml: redis",
	}, uses)
	require.Equal(t, []string{"far: it is from https://charts.example.com, which is not the platform's tree"}, unread)
	require.NotEmpty(t, given.Images["lost"], "something has its place, so that the tree can be built")
	require.NotContains(t, s.Apps.Images, "lost")

	_, unread = found(t, r, s, func(*platform.Release, string, contract.TreeValues) (lint.Tree, error) {
		return lint.Tree{}, errors.New("no such tree")
	})
	require.Equal(t, []string{"the apps (gitops): no such tree"}, unread)
	s.Elsewhere = true
	_, unread = found(t, r, s, nil)
	require.Equal(t, []string{"the apps: their tree is in a repository of the user's"}, unread)
}
