package lint_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/lint"
)

const replicas = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replcias: 1\n"

// told are the fields that are probably wrong, as found has what is certainly.
func told(t *testing.T, r *platform.Release, s contract.RenderInput, tree lint.BuildTree) (doubts, unread []string) {
	t.Helper()
	s.Kubernetes = "1.35.4"
	has, err := lint.Contents(t.Context(), r, s, tree, nil)
	require.NoError(t, err)
	for _, d := range has.Doubts {
		doubts = append(doubts, d.Component+" ("+d.Position()+"): "+d.Err.Error())
	}
	_, unread = found(t, r, s, tree)
	return doubts, unread
}

// TestFieldsThatKubernetesDoesNotKnow are wrong in what Slipway applies. Helm and Argo CD have
// Kubernetes leave them out.
func TestFieldsThatKubernetesDoesNotKnow(t *testing.T) {
	const says = `Deployment a: spec.replcias: got an unknown field, want "replicas"`
	r := load(t, `components:
  - {name: web, kind: manifests, path: web.yaml, namespace: shop-web}
  - {name: kustomized, kind: manifests, path: kustomized, namespace: shop-kustomized}
  - {name: patched, kind: manifests, bundle: theirs, path: patch, namespace: shop-patched}
  - {name: theirs, kind: manifests, bundle: theirs, namespace: shop-theirs}
  - {name: chart, kind: chart, path: chart, namespace: shop-chart}
  - {name: "off", kind: chart, path: chart, namespace: shop-off}
`, map[string]string{
		"web.yaml":                      replicas,
		"kustomized/kustomization.yaml": "resources: [a.yaml]\npatches: [{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replcias: 1}}'}]",
		"kustomized/a.yaml":             deployment("a", "nginx"),
		"patch/patch.yaml":              "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replcias: 2, template: {spec: {containers: [{name: a, $patch: delete}]}}}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\nspec: {replcias: 2}\n",
		"chart/Chart.yaml":              "{apiVersion: v2, name: public-web, version: 1.0.0}",
		"chart/templates/a.yaml":        replicas,
	})
	s := contract.RenderInput{Manifests: fstest.MapFS{"theirs/a.yaml": {Data: []byte(replicas)}}, Off: []contract.ComponentInput{{Component: "off"}}}
	for _, c := range r.Components[:5] {
		s.Components = append(s.Components, contract.ComponentInput{Component: c.Name})
	}
	doubts, unread := told(t, r, s, nil)
	require.Equal(t, []string{
		"web (web.yaml, line 5): " + says,
		"kustomized (kustomized/kustomization.yaml): " + says,
		"patched (patch/patch.yaml, line 4): " + says,
		`patched (patch/patch.yaml, line 9): Deployment b: spec.replcias: got an unknown field, want "replicas"`,
		"theirs (platform.yaml, line 9): " + says,
	}, unread)
	require.Equal(t, []string{"chart (chart/templates/a.yaml, line 5): " + says}, doubts)

	without := s
	without.Manifests = nil
	_, unread = told(t, r, without, nil)
	require.Equal(t, []string{"patched (patch/patch.yaml, line 4): " + says, `patched (patch/patch.yaml, line 9): Deployment b: spec.replcias: got an unknown field, want "replicas"`}, unread[2:], "also of patches alone")

	s.Guessed = true
	doubts, unread = told(t, r, s, nil)
	require.Empty(t, unread)
	require.Len(t, doubts, 6)
	require.Equal(t, "web (web.yaml, line 5): "+says, doubts[0], "a cluster that is there already may be newer")
}

// TestFieldsOfAnotherType are wrong everywhere, unless a run finds out what a chart makes of it.
func TestFieldsOfAnotherType(t *testing.T) {
	const says = "Deployment a: spec.replicas: got text, want a whole number, without quotes"
	replicas := func(n string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replicas: " + n + "\n"
	}
	r := load(t, `components:
  - {name: argocd, kind: manifests, bundle: argocd, namespace: argocd, required: true}
  - {name: web, kind: manifests, path: web.yaml, namespace: shop-web}
  - {name: chart, kind: chart, path: chart, namespace: shop-chart}
  - {name: asks, kind: chart, path: asks, namespace: shop-asks}
  - {name: "off", kind: chart, path: chart, namespace: shop-off}
  - {name: app, kind: app, path: gitops/apps/app, namespace: shop-app}
gitops: {engine: argocd}
`, map[string]string{
		"web.yaml":                   replicas("'2'"),
		"chart/Chart.yaml":           "{apiVersion: v2, name: chart, version: 1.0.0}",
		"chart/templates/a.yaml":     replicas("{{ .Values.replicas | default 2 | quote }}"),
		"asks/Chart.yaml":            "{apiVersion: v2, name: asks, version: 1.0.0}",
		"asks/templates/a.yaml":      replicas(`{{ if lookup "v1" "Node" "" "a" }}2{{ else }}'2'{{ end }}`),
		"gitops/apps/app/Chart.yaml": "{apiVersion: v2, name: app, version: 1.0.0}",
	})
	tree := lint.Tree{Chart: "root", Files: map[string][]byte{
		"root/Chart.yaml":           []byte("{apiVersion: v2, name: root, version: 1.0.0}"),
		"apps/app/Chart.yaml":       []byte("{apiVersion: v2, name: app, version: 1.0.0}"),
		"apps/app/templates/a.yaml": []byte(replicas("'2'")),
		"plain/a.yaml":              []byte("\n" + replicas("'2'\n  replcias: 2")),
		"root/templates/a.yaml": []byte("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: app}\nspec: {source: {path: apps/app}}\n---\n" +
			"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: plain}\nspec: {source: {path: plain}}\n"),
	}}
	s := contract.RenderInput{Apps: &contract.TreeValues{}, Off: []contract.ComponentInput{{Component: "off"}}}
	for _, name := range []string{"web", "chart", "asks"} {
		s.Components = append(s.Components, contract.ComponentInput{Component: name})
	}
	doubts, unread := told(t, r, s, func(*platform.Release, string, contract.TreeValues) (lint.Tree, error) { return tree, nil })
	require.Equal(t, []string{"web (web.yaml, line 5): " + says, "chart (chart/templates/a.yaml): " + says, "plain (gitops/plain/a.yaml, line 6): " + says}, unread)
	require.Equal(t, []string{
		"asks (asks/templates/a.yaml): " + says,
		"app (gitops/apps/app/templates/a.yaml): " + says,
		`plain (gitops/plain/a.yaml, line 7): Deployment a: spec.replcias: got an unknown field, want "replicas"`,
	}, doubts)
}

// TestTheLineOfAField: of a template it is told where the field is right below the one that has it.
func TestTheLineOfAField(t *testing.T) {
	for template, want := range map[string]string{
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replcias: 1\n":                                                                                                                              "line 5",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  {{- if true }}\n  replcias: 1\n  {{- end }}\n":                                                                                              "line 6",
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n  annotations:\n    replcias: '1'\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {{ dict `replcias` 1 | toYaml | nindent 2 }}\n": "",
		"# replcias: 2\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {{ dict `replcias` 1 | toYaml | nindent 2 }}\n":                                                                                 "",
	} {
		r := load(t, "components:\n  - {name: chart, kind: chart, path: chart, namespace: shop}\n", map[string]string{
			"chart/Chart.yaml": "{apiVersion: v2, name: public-web, version: 1.0.0}", "chart/templates/a.yaml": template,
		})
		doubts, unread := told(t, r, contract.RenderInput{Components: []contract.ComponentInput{{Component: "chart"}}}, nil)
		require.Empty(t, unread)
		require.Len(t, doubts, 1, template)
		at := "chart (chart/templates/a.yaml"
		if want != "" {
			at += ", " + want
		}
		require.Equal(t, at+`): Deployment a: spec.replcias: got an unknown field, want "replicas"`, doubts[0], template)
	}
}

// TestFieldsOfAnAppThatIsAppliedOnTheServersSide that Kubernetes does not know are refused there.
func TestFieldsOfAnAppThatIsAppliedOnTheServersSide(t *testing.T) {
	r := load(t, `components:
  - {name: argocd, kind: manifests, bundle: argocd, namespace: argocd, required: true}
  - {name: app, kind: app, path: gitops/apps/app, namespace: shop}
gitops: {engine: argocd}
`, map[string]string{"gitops/apps/app/Chart.yaml": "{apiVersion: v2, name: app, version: 1.0.0}"})
	for options, want := range map[string]string{"[]": "left out", "[CreateNamespace=false, ServerSideApply=true]": "refused"} {
		tree := lint.Tree{Chart: "root", Files: map[string][]byte{
			"root/Chart.yaml":           []byte("{apiVersion: v2, name: root, version: 1.0.0}"),
			"apps/app/Chart.yaml":       []byte("{apiVersion: v2, name: app, version: 1.0.0}"),
			"apps/app/templates/a.yaml": []byte(replicas),
			"plain/a.yaml":              []byte(replicas),
			"root/templates/a.yaml": []byte("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: app}\nspec: {source: {path: apps/app}, syncPolicy: {syncOptions: " + options + "}}\n---\n" +
				"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: plain}\nspec: {source: {path: plain}, syncPolicy: {syncOptions: " + options + "}}\n"),
		}}
		doubts, unread := told(t, r, contract.RenderInput{Apps: &contract.TreeValues{}}, func(*platform.Release, string, contract.TreeValues) (lint.Tree, error) { return tree, nil })
		const says = `Deployment a: spec.replcias: got an unknown field, want "replicas"`
		if want == "refused" {
			require.Equal(t, []string{"plain (gitops/plain/a.yaml, line 5): " + says}, unread)
			require.Equal(t, []string{"app (gitops/apps/app/templates/a.yaml, line 5): " + says}, doubts)
			continue
		}
		require.Empty(t, unread)
		require.Len(t, doubts, 2)
	}
}
