package preorchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// probed is a cluster that holds objs, and that keeps what has finalizers.
func probed(objs ...runtime.Object) (*kube.Client, *fake.FakeDynamicClient) {
	api := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		argo.Applications(): "ApplicationList", argo.AppProjects(): "AppProjectList", configMaps(): "ConfigMapList",
	}, objs...)
	api.PrependReactor("delete", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		d := a.(clienttesting.DeleteAction)
		o, err := api.Tracker().Get(d.GetResource(), d.GetNamespace(), d.GetName())
		return err == nil && len(o.(*unstructured.Unstructured).GetFinalizers()) > 0, nil, nil
	})
	return &kube.Client{Dynamic: api}, api
}

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

// theProbe is the probe with what it brought, beside an object of somebody else.
func theProbe(finalizers ...string) []runtime.Object {
	var out []runtime.Object
	for _, o := range probeObjects("demo", contract.ReconcileInput{}) {
		if o.GetKind() == "Application" && len(finalizers) > 0 {
			o.SetFinalizers(finalizers)
		}
		out = append(out, o)
	}
	for _, name := range []string{probeApp, "kube-root-ca.crt"} {
		out = append(out, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": kube.SystemNamespace},
		}})
	}
	return out
}

func TestTheProbeGoesAtOnceWithWhatItBrought(t *testing.T) {
	for name, objs := range map[string][]runtime.Object{
		"ours":                  theProbe(),
		"of an earlier Slipway": theProbe(argo.CascadeFinalizer),
		"its Application gone":  theProbe()[2:],
		"none":                  theProbe()[3:],
	} {
		t.Run(name, func(t *testing.T) {
			c, api := probed(objs...)
			require.NoError(t, removeProbe(t.Context(), c))
			for _, gvr := range []schema.GroupVersionResource{argo.Applications(), argo.AppProjects()} {
				left, err := c.List(t.Context(), gvr, "", "")
				require.NoError(t, err)
				require.Empty(t, left)
			}
			left, err := c.List(t.Context(), configMaps(), "", "")
			require.NoError(t, err)
			require.Len(t, left, 1)
			require.Equal(t, "kube-root-ca.crt", left[0].GetName())

			var gone []string
			for _, a := range api.Actions() {
				if a.GetVerb() == "delete" {
					gone = append(gone, a.GetResource().Resource)
				}
			}
			require.Equal(t, []string{"applications", "configmaps", "appprojects"}, gone, "the object after the Application that would bring it again")
		})
	}
}

// A finalizer would have the removal wait for Argo CD.
func TestTheProbeHasNoFinalizer(t *testing.T) {
	for _, o := range probeObjects("demo", contract.ReconcileInput{}) {
		require.Empty(t, o.GetFinalizers(), o.GetKind())
	}
}
