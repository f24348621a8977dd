package kube_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// TestRealWhatWasSetByHandIsUndone: also what the manifest does not have; what a
// controller has set stays.
func TestRealWhatWasSetByHandIsUndone(t *testing.T) {
	c, ns, busybox := real(t)
	manifest := deployment("web", busybox, "exec busybox sleep 1000", `env: [{name: A, value: a}]`) + `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {a: b}}, data: {k: v}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`
	objs, err := kube.Decode([]byte(manifest))
	require.NoError(t, err)
	apply(t, c, ns, manifest)
	require.NoError(t, readiness.WaitRollout(t.Context(), c, "Deployment", ns, "web"))
	drift := func() []kube.Applied {
		found, err := c.Drift(t.Context(), objs, kube.ApplyOptions{Namespace: ns})
		require.NoError(t, err)
		return found
	}
	require.Empty(t, drift())

	for _, edit := range []struct {
		object int
		patch  string
	}{
		{0, `{"spec":{"replicas":3}}`},
		{0, `{"metadata":{"labels":{"by":"hand"}}}`},
		{0, `{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"B","value":"b"}]}]}}}}`},
		{0, `{"spec":{"template":{"metadata":{"annotations":{"by":"hand"}}}}}`},
		{1, `{"data":{"more":"of it"}}`},
		{1, `{"data":{"k":"other"},"metadata":{"labels":{"a":null}}}`},
		{2, `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`},
	} {
		api, err := c.Resource(t.Context(), objs[edit.object].GroupVersionKind(), ns)
		require.NoError(t, err)
		before, err := api.Get(t.Context(), objs[edit.object].GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		kind := types.MergePatchType
		if edit.object == 0 {
			kind = types.StrategicMergePatchType
		}
		_, err = api.Patch(t.Context(), objs[edit.object].GetName(), kind, []byte(edit.patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
		require.NoError(t, err)
		require.Len(t, drift(), 1, edit.patch)
		_, err = applyYAML(t.Context(), c, []byte(manifest), kube.ApplyOptions{Namespace: ns})
		require.NoError(t, err)
		require.Empty(t, drift(), edit.patch)
		after, err := api.Get(t.Context(), objs[edit.object].GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		for _, field := range []string{"data", "rules"} {
			require.Equal(t, before.Object[field], after.Object[field], edit.patch)
		}
		require.Equal(t, before.GetLabels(), after.GetLabels(), edit.patch)
		if edit.object == 0 {
			require.Equal(t, before.Object["spec"], after.Object["spec"], edit.patch)
		}
	}
	// Controllers' annotations stay.
	web, err := c.Kubernetes.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, web.Annotations["deployment.kubernetes.io/revision"])
}
