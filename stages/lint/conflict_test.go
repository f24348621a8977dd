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
