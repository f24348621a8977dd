package lint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/lint"
)

// A chart may render a key twice, as for Helm; a file of the release may not have it twice.
func TestKeysThatAChartRendersTwice(t *testing.T) {
	const twice = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    app: a\n    app: b\ndata: {jvm: a, jvm: b}\n"
	r := load(t, `components:
  - {name: chart, kind: chart, path: chart, namespace: shop}
  - {name: files, kind: manifests, path: a.yaml, namespace: shop}
`, map[string]string{
		"a.yaml":                 twice,
		"chart/Chart.yaml":       "{apiVersion: v2, name: c, version: 1.0.0}",
		"chart/templates/a.yaml": twice,
		"chart/templates/h.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: h, annotations: {helm.sh/hook: pre-install}}, stringData: {a: a, a: b}}",
		"chart/crds/d.yaml":      "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.example.com, labels: {a: a, a: b}}}",
	})
	s := contract.RenderInput{Kubernetes: "1.35.4"}
	for _, c := range r.Components {
		s.Components = append(s.Components, contract.ComponentInput{Component: c.Name})
	}
	has, err := lint.Contents(t.Context(), r, s, nil, nil)
	require.NoError(t, err)
	var doubts, wrong []string
	for _, d := range has.Doubts {
		doubts = append(doubts, d.Component+" ("+d.Place()+"): "+d.Err.Error())
	}
	for _, u := range has.Unread {
		wrong = append(wrong, u.Component+" ("+u.Place()+")")
	}
	require.Equal(t, []string{"files (a.yaml, line 7)"}, wrong)
	require.Equal(t, []string{
		"chart (chart/templates/a.yaml): the key app is twice in a mapping; Kubernetes takes the last one",
		"chart (chart/templates/a.yaml): the key jvm is twice in a mapping; Kubernetes takes the last one",
		"chart (chart/templates/h.yaml): the key a is twice in a mapping; Kubernetes takes the last one",
	}, doubts)
}
