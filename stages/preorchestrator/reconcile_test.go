package preorchestrator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// probed is a cluster that holds objs, and that keeps what has finalizers.
func probed(objs ...runtime.Object) (*kube.Client, *fake.FakeDynamicClient) {
	api := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		argo.Applications(): "ApplicationList", argo.AppProjects(): "AppProjectList", podTemplates(): "PodTemplateList",
	}, objs...)
	api.PrependReactor("delete", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		d := a.(clienttesting.DeleteAction)
		o, err := api.Tracker().Get(d.GetResource(), d.GetNamespace(), d.GetName())
		return err == nil && len(o.(*unstructured.Unstructured).GetFinalizers()) > 0, nil, nil
	})
	return &kube.Client{Dynamic: api}, api
}

func podTemplates() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "podtemplates"}
}

// theProbe is the probe with what it brought, beside an object of somebody else.
func theProbe() []runtime.Object {
	var out []runtime.Object
	for _, o := range probeObjects("demo", contract.ReconcileInput{Namespace: "cd"}) {
		out = append(out, o)
	}
	for _, name := range []string{probeApp, "of-somebody-else"} {
		out = append(out, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{"name": name, "namespace": kube.SystemNamespace},
		}})
	}
	return out
}

func TestTheProbeGoesAtOnceWithWhatItBrought(t *testing.T) {
	for name, objs := range map[string][]runtime.Object{
		"ours":                 theProbe(),
		"its Application gone": theProbe()[2:],
		"none":                 theProbe()[3:],
	} {
		t.Run(name, func(t *testing.T) {
			c, api := probed(objs...)
			require.NoError(t, removeProbe(t.Context(), c, "cd"))
			for _, gvr := range []schema.GroupVersionResource{argo.Applications(), argo.AppProjects()} {
				left, err := c.List(t.Context(), gvr, "", "")
				require.NoError(t, err)
				require.Empty(t, left)
			}
			left, err := c.List(t.Context(), podTemplates(), "", "")
			require.NoError(t, err)
			require.Len(t, left, 1)
			require.Equal(t, "of-somebody-else", left[0].GetName())

			var gone []string
			for _, a := range api.Actions() {
				if a.GetVerb() == "delete" {
					gone = append(gone, a.GetResource().Resource)
				}
			}
			require.Equal(t, []string{"applications", "podtemplates", "appprojects"}, gone, "the object after the Application that would bring it again")
		})
	}
}

// TestTheProbeIsOutsideOfArgoCDsNamespace, where only its project is.
func TestTheProbeIsOutsideOfArgoCDsNamespace(t *testing.T) {
	in := contract.ReconcileInput{Namespace: "cd", Repository: "https://git.example.org/slipway/probe.git"}
	got := map[string]string{}
	for _, o := range probeObjects("demo", in) {
		got[o.GetKind()] = o.GetNamespace()
		require.Equal(t, kube.Labels("demo"), o.GetLabels())
	}
	require.Equal(t, map[string]string{"AppProject": "cd", "Application": kube.SystemNamespace}, got)
}

// TestTheProjectOfTheProbeAllowsNothingElse: an Application that somebody pushes may use it.
func TestTheProjectOfTheProbeAllowsNothingElse(t *testing.T) {
	objs, err := kube.Decode(probeTree()["probe.yaml"])
	require.NoError(t, err)
	require.Len(t, objs, 1)
	require.Equal(t, "PodTemplate", objs[0].GetKind(), "which nothing runs, and Slipway does not trust")
	spec := probeObjects("demo", contract.ReconcileInput{Namespace: "cd"})[0].Object["spec"].(map[string]any)
	require.Equal(t, []any{}, spec["clusterResourceWhitelist"])
	require.Equal(t, []any{map[string]any{"group": "", "kind": "PodTemplate"}}, spec["namespaceResourceWhitelist"])
	require.Len(t, spec["destinations"], 1)
}

// A finalizer would have the removal wait for Argo CD.
func TestTheProbeHasNoFinalizer(t *testing.T) {
	for _, o := range probeObjects("demo", contract.ReconcileInput{Namespace: "cd"}) {
		require.Empty(t, o.GetFinalizers(), o.GetKind())
	}
}

// TestArgoCDIsVerifiedByUse: the probe is seen at the commit that was pushed, and goes.
func TestArgoCDIsVerifiedByUse(t *testing.T) {
	const (
		atProbe   = "/apis/argoproj.io/v1alpha1/namespaces/slipway-system/applications/slipway-probe"
		atProject = "/apis/argoproj.io/v1alpha1/namespaces/cd/appprojects/slipway-probe"
	)
	in := contract.ReconcileInput{Namespace: "cd", Repository: "https://git.example.org/slipway/probe.git", Revision: "abc"}
	api, env := preparing(t, "")
	api.Define("argoproj.io/v1alpha1", "AppProject", true)
	api.Define("argoproj.io/v1alpha1", "Application", true)
	api.Set(t, atProbe, "{metadata: {name: slipway-probe, namespace: slipway-system}, status: {sync: {status: Synced, revision: old}, health: {status: Healthy}}}")
	var source any
	api.Controller = func(path string, o map[string]any) {
		if path == atProbe {
			source = o["spec"].(map[string]any)["source"].(map[string]any)["repoURL"]
			o["status"] = map[string]any{"sync": map[string]any{"status": "Synced", "revision": "abc"}, "health": map[string]any{"status": "Healthy"}}
		}
	}
	out, err := runReconcile(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, contract.Reconcile{Application: "slipway-system/slipway-probe", Revision: "abc"}, out)
	require.Equal(t, in.Repository, source)
	require.Nil(t, api.Get(atProbe))
	require.Nil(t, api.Get(atProject))
	require.Equal(t, []string{"DELETE " + atProbe, "PATCH " + atProject, "PATCH " + atProbe, "DELETE " + atProbe, "DELETE " + atProject}, api.Writes(), "what a killed run left goes first, and the project comes before who names it")

	require.ErrorContains(t, verifyReconcile(t.Context(), env, in, out), "namespace cd has no StatefulSet or Deployment with the label app.kubernetes.io/name=argocd-application-controller")
	// As Argo CD's chart names them in a Helm release argo-cd.
	const repo = "/apis/apps/v1/namespaces/cd/deployments/argo-cd-argocd-repo-server"
	for path, component := range map[string]string{"/apis/apps/v1/namespaces/cd/statefulsets/argo-cd-argocd-application-controller": "application-controller", repo: "repo-server"} {
		name := path[strings.LastIndexByte(path, '/')+1:]
		api.Set(t, path, "{metadata: {name: "+name+", namespace: cd, labels: {app.kubernetes.io/name: argocd-"+component+", app.kubernetes.io/instance: argo-cd}}, "+
			"spec: {replicas: 1}, status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}}")
	}
	require.NoError(t, verifyReconcile(t.Context(), env, in, out))
	api.Set(t, repo, "status: {availableReplicas: 0}")
	require.ErrorContains(t, verifyReconcile(t.Context(), env, in, out), "Deployment cd/argo-cd-argocd-repo-server: 1 of 1 pods updated, 0 available")
}

func TestAProbeThatIsNotSynced(t *testing.T) {
	api, env := preparing(t, "")
	api.Define("argoproj.io/v1alpha1", "AppProject", true)
	api.Define("argoproj.io/v1alpha1", "Application", true)
	api.Controller = func(_ string, o map[string]any) {
		if o["kind"] == "Application" {
			o["status"] = map[string]any{"sync": map[string]any{"status": "Synced", "revision": "older"}, "health": map[string]any{"status": "Healthy"}}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := runReconcile(ctx, env, contract.ReconcileInput{Namespace: "cd", Revision: "abc"})
	require.ErrorIs(t, err, &fault.Fault{Code: argo.CodeStale})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.ErrorContains(t, err, "last seen: at revision older")
	require.Nil(t, api.Get("/apis/argoproj.io/v1alpha1/namespaces/slipway-system/applications/slipway-probe"))
	require.Nil(t, api.Get("/apis/argoproj.io/v1alpha1/namespaces/cd/appprojects/slipway-probe"), "somebody else could use it")
}
