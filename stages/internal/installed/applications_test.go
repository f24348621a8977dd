package installed

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
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
	r := &deployment{}
	for _, want := range [][]string{{"root", "mine"}, {"eso"}, {"argocd"}} {
		var got []string
		for _, a := range r.roots(left) {
			got = append(got, a.GetName())
		}
		require.Equal(t, want, got)
		left = left[:len(left)-len(got)]
	}
}

// TestOnlyThePlatformsApplicationsTakeTheirObjectsAlong: those of a user in a namespace of
// the platform may have objects anywhere.
func TestOnlyThePlatformsApplicationsTakeTheirObjectsAlong(t *testing.T) {
	label := map[string]string{kube.DeploymentLabel: "demo"}
	makes := func(kind, name string) map[string]any {
		return map[string]any{"resources": []any{map[string]any{"group": "argoproj.io", "kind": kind, "namespace": "argocd", "name": name}}}
	}
	var apps []unstructured.Unstructured
	for _, name := range []string{"root", "child", "grandchild", "of-set", "theirs", "of-theirs"} {
		a := application(name, "")
		a.SetNamespace("argocd")
		a.SetUID(types.UID(name))
		a.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: kube.FieldManager}})
		apps = append(apps, a)
	}
	apps[0].SetLabels(label)
	track := func(o *unstructured.Unstructured, by string) {
		o.SetAnnotations(map[string]string{kube.TrackingID: by + ":argoproj.io/" + o.GetKind() + ":argocd/" + o.GetName()})
	}
	track(&apps[1], "root")
	track(&apps[2], "child")
	track(&apps[5], "theirs")
	apps[0].Object["status"] = makes("Application", "child")
	apps[1].Object["status"] = makes("Application", "grandchild")
	apps[2].Object["status"] = makes("ApplicationSet", "set")
	apps[3].SetOwnerReferences([]metav1.OwnerReference{{UID: "set"}})
	apps[4].Object["status"] = makes("Application", "of-theirs")
	set := application("set", "")
	set.SetKind("ApplicationSet")
	set.SetNamespace("argocd")
	set.SetUID("set")
	track(&set, "grandchild")
	projects := argo.Projects{"default": *argo.Project("argocd", "default", nil, map[string]any{"destinations": argo.Destinations([]string{"argocd"})})}
	require.Equal(t, map[types.UID]bool{"root": true, "child": true, "grandchild": true, "set": true, "of-set": true},
		origin{deployment: "demo", argo: "argocd", projects: projects}.platforms(append(apps, set)))
}

// TestWhatArgoCDHasOfTheClustersOwnScopeIsMarked: it is removed without a cascade.
func TestWhatArgoCDHasOfTheClustersOwnScopeIsMarked(t *testing.T) {
	api := kubetest.Serve(t)
	api.Define("rbac.authorization.k8s.io/v1", "ClusterRole", false)
	const at = "/apis/rbac.authorization.k8s.io/v1/clusterroles/"
	api.Set(t, at+"argocd", "{metadata: {name: argocd, "+tracked("argocd", "rbac.authorization.k8s.io/ClusterRole:/argocd")+"}}")
	api.Set(t, at+"theirs", "{metadata: {name: theirs, "+tracked("of-theirs", "rbac.authorization.k8s.io/ClusterRole:/theirs")+"}}")
	client, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	a := application("argocd", kube.AdoptedEngine)
	a.SetNamespace("argocd")
	a.Object["status"] = map[string]any{"resources": []any{
		map[string]any{"group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "argocd"},
		map[string]any{"group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "theirs"},
		map[string]any{"group": "example.com", "kind": "NotServed", "name": "a"},
		map[string]any{"kind": "ConfigMap", "namespace": "argocd", "name": "argocd-cm"},
	}}
	r := &deployment{Remover: &Remover{Client: client, Deployment: "demo", Argo: "argocd", Log: slog.New(slog.DiscardHandler)}}
	r.projects = argo.Projects{"default": *argo.Project("argocd", "default", nil, map[string]any{"clusterResourceWhitelist": []any{map[string]any{"group": "rbac.*", "kind": "ClusterRole"}}})}
	require.NoError(t, r.markOwned(t.Context(), a))
	require.Equal(t, []string{"PATCH " + at + "argocd"}, api.Writes())
	require.Equal(t, map[string]any{kube.DeploymentLabel: "demo"}, api.Get(at + "argocd")["metadata"].(map[string]any)["labels"])
}

// TestArgoCDsControllerIsFoundWhateverItIs: its chart can make a Deployment of it, and names
// it after the Helm release.
func TestArgoCDsControllerIsFoundWhateverItIs(t *testing.T) {
	const named = "{name: argo-cd-argocd-application-controller, namespace: cd, labels: {app.kubernetes.io/name: argocd-application-controller}}"
	api := kubetest.Serve(t)
	client, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	r := &deployment{Remover: &Remover{Client: client, Deployment: "demo"}, made: []string{"cd"}}
	runs, err := r.controllerRuns(t.Context())
	require.NoError(t, err)
	require.False(t, runs)
	api.Set(t, "/apis/apps/v1/namespaces/cd/deployments/argo-cd-argocd-application-controller", "metadata: "+named)
	api.Set(t, "/api/v1/namespaces/cd/pods/argo-cd-argocd-application-controller-0", "{metadata: "+named+", status: {conditions: [{type: Ready, status: \"True\"}]}}")
	runs, err = r.controllerRuns(t.Context())
	require.NoError(t, err)
	require.True(t, runs)
}

// TestAControllerThatDoesNotStartIsWaitedForOnce: every group of Applications asks for it.
func TestAControllerThatDoesNotStartIsWaitedForOnce(t *testing.T) {
	api, client := withSets(t)
	const pod = "/api/v1/namespaces/shop/pods/argocd-application-controller-0"
	api.Set(t, pod, "status: {conditions: null}")
	r := found(t, client)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	runs, err := r.controllerRuns(ctx)
	require.NoError(t, err)
	require.False(t, runs)
	api.Set(t, pod, "status: {conditions: [{type: Ready, status: 'True'}]}")
	runs, err = r.controllerRuns(t.Context())
	require.NoError(t, err)
	require.False(t, runs)
}

// TestAControllerThatCannotBeSeenMayRun: an Application that loses its finalizers leaves
// what it owns behind.
func TestAControllerThatCannotBeSeenMayRun(t *testing.T) {
	answers := map[string]string{
		"/apis/argoproj.io/v1alpha1/applicationsets": `{"kind":"List","apiVersion":"v1","items":[]}`,
		"/apis/argoproj.io/v1alpha1/applications":    `{"kind":"ApplicationList","apiVersion":"argoproj.io/v1alpha1","items":[{"kind":"Application","apiVersion":"argoproj.io/v1alpha1","metadata":{"name":"root","namespace":"argocd"}}]}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"you may not"}`
		}
		_, _ = io.WriteString(w, text)
	}))
	defer s.Close()
	c, err := kube.New(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	r := &deployment{Remover: remover(c), projects: argo.Projects{}, platform: map[types.UID]bool{}, made: []string{"argocd"}}
	require.ErrorContains(t, r.applications(t.Context()), "list statefulsets: you may not")
}
