package argo

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAProjectPermits what Argo CD would, by kind, name and namespace.
func TestAProjectPermits(t *testing.T) {
	item := func(group, kind, name string) any {
		return map[string]any{"group": group, "kind": kind, "name": name}
	}
	in := func(namespaces ...string) []any { return Destinations(namespaces) }
	projects := Projects{
		"default": *Project("cd", "default", nil, map[string]any{"destinations": in("*"), "clusterResourceWhitelist": []any{item("*", "*", "")}, "clusterResourceBlacklist": []any{item("", "Node", "")}}),
		"apps": *Project("cd", "apps", nil, map[string]any{"destinations": in("shop", "web-*", "!web-0"), "clusterResourceWhitelist": []any{item("scheduling.k8s.io", "PriorityClass", ""), item("", "Namespace", "shop")},
			"namespaceResourceWhitelist": []any{item("", "ConfigMap", "")}}),
		"free": *Project("cd", "free", nil, map[string]any{"destinations": in("shop"), "namespaceResourceBlacklist": []any{item("", "Secret", "")}}),
	}
	for _, c := range []struct {
		project, version, kind, namespace, name string
		want                                    bool
	}{
		{"", "v1", "Anything", "", "a", true},
		{"", "v1", "Node", "", "a", false},
		{"apps", "scheduling.k8s.io/v1", "PriorityClass", "", "a", true},
		{"apps", "rbac.authorization.k8s.io/v1", "ClusterRole", "", "a", false},
		{"apps", "v1", "Namespace", "", "shop", true},
		{"apps", "v1", "Namespace", "", "team", false},
		{"apps", "v1", "ConfigMap", "shop", "a", true},
		{"apps", "v1", "ConfigMap", "web-1", "a", true},
		{"apps", "v1", "ConfigMap", "web-0", "a", false},
		{"apps", "v1", "ConfigMap", "team", "a", false},
		{"apps", "v1", "Secret", "shop", "a", false},
		{"free", "v1", "ConfigMap", "shop", "a", true},
		{"free", "v1", "Secret", "shop", "a", false},
		{"free", "v1", "Node", "", "a", false},
		{"gone", "v1", "ConfigMap", "shop", "a", false},
	} {
		by := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"project": c.project}}}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.version, "kind": c.kind}}
		o.SetNamespace(c.namespace)
		o.SetName(c.name)
		require.Equal(t, c.want, projects.Permit(by, o), c)
	}
}
