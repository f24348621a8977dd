package infrastructure

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/removal"
)

func application(name, adopted string) unstructured.Unstructured {
	o := unstructured.Unstructured{Object: map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}}
	o.SetName(name)
	if adopted != "" {
		o.SetLabels(map[string]string{kube.AdoptedLabel: adopted})
	}
	return o
}

// TestWhatAppsRestOnIsRemovedAfterThem, and Argo CD itself last.
func TestWhatAppsRestOnIsRemovedAfterThem(t *testing.T) {
	left := []unstructured.Unstructured{
		application("argocd", kube.AdoptedEngine), application("eso", kube.AdoptedOther), application("root", ""), application("mine", ""),
	}
	for _, want := range [][]string{{"root", "mine"}, {"eso"}, {"argocd"}} {
		var got []string
		for _, a := range roots(left) {
			got = append(got, a.GetName())
		}
		require.Equal(t, want, got)
		left = left[:len(left)-len(got)]
	}
}

// TestWhatArgoCDHasOfTheClustersOwnScopeIsMarked: it is removed without a cascade.
func TestWhatArgoCDHasOfTheClustersOwnScopeIsMarked(t *testing.T) {
	api := kubetest.Serve(t)
	api.Define("rbac.authorization.k8s.io/v1", "ClusterRole", false)
	const at = "/apis/rbac.authorization.k8s.io/v1/clusterroles/"
	api.Set(t, at+"argocd", "{metadata: {name: argocd}}")
	client, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	a := application("argocd", kube.AdoptedEngine)
	a.Object["status"] = map[string]any{"resources": []any{
		map[string]any{"group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "argocd"},
		map[string]any{"group": "example.com", "kind": "NotServed", "name": "a"},
		map[string]any{"kind": "ConfigMap", "namespace": "argocd", "name": "argocd-cm"},
	}}
	r := &remover{Remover: &removal.Remover{Client: client, Deployment: "demo"}}
	require.NoError(t, r.markOwned(t.Context(), a))
	require.Equal(t, []string{"PATCH " + at + "argocd"}, api.Writes())
	require.Equal(t, map[string]any{kube.DeploymentLabel: "demo"}, api.Get(at + "argocd")["metadata"].(map[string]any)["labels"])
}
