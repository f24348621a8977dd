package lint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
)

func configMap(namespace, name string) string {
	if namespace != "" {
		namespace = ", namespace: " + namespace
	}
	return "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + namespace + "}}\n"
}

// TestObjectsOfTwoComponents flip with each install; those of a file, too.
func TestObjectsOfTwoComponents(t *testing.T) {
	r := load(t, `components:
  - {name: one, kind: chart, path: chart, namespace: shop}
  - {name: two, kind: chart, path: chart, namespace: shop}
  - {name: three, kind: manifests, path: m, namespace: argocd}
  - {name: elsewhere, kind: chart, path: chart, namespace: shop-else}
  - {name: "off", kind: chart, path: chart, namespace: shop}
`, map[string]string{
		"chart/Chart.yaml":       "{apiVersion: v2, name: c, version: 1.0.0}",
		"chart/templates/a.yaml": configMap("", "a") + configMap("", "{{ .Release.Name }}") + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: more}}\n",
		// A hook is made anew each time in any case.
		"chart/templates/hook.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: three, namespace: shop, annotations: {helm.sh/hook: pre-install}}}\n",
		"m/a.yaml":                  configMap("", "twice") + configMap("argocd", "twice") + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: more}}\n",
		"m/b.yaml":                  configMap("", "twice") + configMap("shop", "one") + "---\n{apiVersion: v1, kind: Secret, metadata: {name: twice}}\n",
		"m/c.yaml":                  "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r, namespace: x}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n",
	})
	s := contract.RenderInput{Off: []contract.ComponentInput{{Component: "off"}}}
	for _, c := range r.Components[:4] {
		s.Components = append(s.Components, contract.ComponentInput{Component: c.Name})
	}
	_, unread := found(t, r, s, nil)
	require.Equal(t, []string{
		"two (chart/templates/a.yaml): the component one has the ConfigMap shop/a, too (chart/templates/a.yaml); remove one, or give it another name",
		"three (m/a.yaml): the file has the ConfigMap argocd/twice twice; remove one, or give it another name",
		"three (m/b.yaml): m/a.yaml has the ConfigMap argocd/twice, too; remove one, or give it another name",
		"three (m/b.yaml): the component one has the ConfigMap shop/one, too (chart/templates/a.yaml); remove one, or give it another name",
	}, unread)
}

// TestChartsThatRenderDifferently: an install that changes nothing leaves them alone, and an
// upgrade does not.
func TestChartsThatRenderDifferently(t *testing.T) {
	r := load(t, "components:\n  - {name: web, kind: chart, path: chart, namespace: shop}\n  - {name: calm, kind: chart, path: calm, namespace: argocd}\n", map[string]string{
		"chart/Chart.yaml":              "{apiVersion: v2, name: c, version: 1.0.0}",
		"chart/templates/_helpers.tpl":  `{{ define "at" }}{{ now | date "15:04:05" }}{{ end }}`,
		"chart/templates/job.yaml":      "{apiVersion: v1, kind: ConfigMap, metadata: {name: 'migrate-{{ .Release.Revision }}'}}\n",
		"chart/templates/now.yaml":      "{apiVersion: v1, kind: ConfigMap, metadata: {name: now}, data: {at: '{{ include \"at\" . }}'}}\n",
		"chart/templates/password.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: password}, stringData: {a: '{{ randAlphaNum 16 }}'}}\n" + configMap("", "same"),
		"chart/templates/first.yaml":    `{{ if .Release.IsInstall }}{apiVersion: v1, kind: ConfigMap, metadata: {name: first}}{{ end }}` + "\n",
		"chart/templates/ca.yaml":       `{{ $ca := genCA "a" 1 }}{apiVersion: v1, kind: Secret, metadata: {name: ca}, stringData: {a: {{ $ca.Cert | quote }}}}` + "\n",
		"chart/templates/hook.yaml":     "{apiVersion: v1, kind: ConfigMap, metadata: {name: 'h-{{ .Release.Revision }}', annotations: {helm.sh/hook: pre-upgrade}}}\n",
		"chart/templates/NOTES.txt":     "{{ randAlphaNum 16 }}",
		"calm/Chart.yaml":               "{apiVersion: v2, name: calm, version: 1.0.0}",
		"calm/templates/a.yaml":         configMap("", "calm"),
	})
	s := contract.RenderInput{Components: []contract.ComponentInput{{Component: "web"}, {Component: "calm"}}}
	doubts, unread := told(t, r, s, nil)
	require.Empty(t, unread)
	const kept = " anew each time; installs leave it as it is until the chart, its values or its images change"
	require.Equal(t, []string{
		"web (chart/templates/ca.yaml): the chart renders the Secret ca" + kept,
		"web (chart/templates/first.yaml): the chart renders the ConfigMap first for an install and not for an upgrade; it is removed when the chart, its values or its images change",
		"web (chart/templates/job.yaml): the chart renders the ConfigMap migrate-1 for an install and not for an upgrade; it is removed when the chart, its values or its images change",
		"web (chart/templates/job.yaml): the chart renders the ConfigMap migrate-2 for an upgrade and not for an install; it is made when the chart, its values or its images change",
		"web (chart/templates/now.yaml): the chart renders the ConfigMap now" + kept,
		"web (chart/templates/password.yaml): the chart renders the Secret password" + kept,
	}, doubts)
}
