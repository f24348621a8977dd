package kube_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// TestWhatWasScaledIsScaledBack: to the one pod that a manifest without replicas has.
func TestWhatWasScaledIsScaledBack(t *testing.T) {
	for _, replicas := range []string{"0", "3"} {
		api, c := onFake(t)
		objs := objects(t, web)
		_, err := c.Apply(t.Context(), objs, kube.ApplyOptions{})
		require.NoError(t, err)
		scaled, err := c.Rescale(t.Context(), objs, "")
		require.NoError(t, err)
		require.Empty(t, scaled)

		api.Set(t, atWeb, "spec: {replicas: "+replicas+"}")
		p := plan.Verify("web")
		_, err = planned(t, c, p).Rescale(t.Context(), objs, "")
		require.NoError(t, err)
		require.ErrorIs(t, p.Err(), plan.ErrChange)
		scaled, err = c.Rescale(t.Context(), objs, "")
		require.NoError(t, err)
		require.Equal(t, []string{"Deployment ns/web"}, scaled)
		require.EqualValues(t, 1, api.Get(atWeb)["spec"].(map[string]any)["replicas"])

		declared := objects(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: ns}, spec: {replicas: "+replicas+"}}")
		api.Set(t, atWeb, "spec: {replicas: "+replicas+"}")
		scaled, err = c.Rescale(t.Context(), declared, "")
		require.NoError(t, err)
		require.Empty(t, scaled, "that is what it declares")
	}
}

// TestWhatSomebodyElseScales keeps its pods, but not none.
func TestWhatSomebodyElseScales(t *testing.T) {
	const (
		hpas  = "/apis/autoscaling/v2/namespaces/"
		ofWeb = "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}"
		inObj = "---\n{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, " + ofWeb + "}\n"
	)
	by := func(manager string) string {
		return "metadata: {managedFields: [{manager: slipway, operation: Apply, fieldsV1: {f:spec: {f:template: {}}}}, " +
			"{manager: " + manager + ", operation: Update, subresource: scale, fieldsV1: {f:spec: {f:replicas: {}}}}]}"
	}
	for what, c := range map[string]struct {
		path, set string // of what is in the cluster besides
		more      string // in the manifest
		theirs    bool
	}{
		"nobody":                           {},
		"a HorizontalPodAutoscaler":        {path: hpas + "ns/horizontalpodautoscalers/web", set: ofWeb, theirs: true},
		"one of another version":           {path: hpas + "ns/horizontalpodautoscalers/web", set: "spec: {scaleTargetRef: {apiVersion: apps/v1beta1, kind: Deployment, name: web}}", theirs: true},
		"one that is yet to come":          {more: inObj, theirs: true},
		"one of another namespace":         {path: hpas + "other/horizontalpodautoscalers/web", set: ofWeb},
		"one of another Deployment":        {path: hpas + "ns/horizontalpodautoscalers/web", set: "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}}"},
		"one of a StatefulSet":             {path: hpas + "ns/horizontalpodautoscalers/web", set: "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}}"},
		"one of a kind of somebody else's": {path: hpas + "ns/horizontalpodautoscalers/web", set: "spec: {scaleTargetRef: {apiVersion: example.com/v1, kind: Deployment, name: web}}"},
		"another autoscaler":               {path: atWeb, set: by("cluster-proportional-autoscaler"), theirs: true},
		"kubectl scale":                    {path: atWeb, set: by("kubectl")},
		"kubectl edit":                     {path: atWeb, set: by("kubectl-edit")},
		"Slipway":                          {path: atWeb, set: by("slipway")},
	} {
		t.Run(what, func(t *testing.T) {
			api, client := onFake(t)
			objs := objects(t, web+c.more)
			api.Set(t, atWeb, "{metadata: {name: web, namespace: ns}, spec: {replicas: 3}}")
			if c.path != "" {
				api.Set(t, c.path, c.set)
			}
			scaled, err := client.Rescale(t.Context(), objs, "ns")
			require.NoError(t, err)
			require.Equal(t, !c.theirs, len(scaled) == 1)

			api.Set(t, atWeb, "spec: {replicas: 0}")
			scaled, err = client.Rescale(t.Context(), objs, "ns")
			require.NoError(t, err)
			require.Len(t, scaled, 1, "no autoscaler leaves none")
		})
	}
}

// TestRealScalingIsUndone, whatever managedFields say of it: the API server notes who scales
// only where the number of replicas has a manager already.
func TestRealScalingIsUndone(t *testing.T) {
	c, ns, busybox := real(t)
	manifest := strings.Replace(deployment("web", busybox, "exec busybox sleep 1000", ""), "  replicas: 1\n", "", 1)
	objs := objects(t, manifest)
	apply(t, c, ns, manifest)
	scale := func(manager, replicas string) {
		_, err := c.Kubernetes.AppsV1().Deployments(ns).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":`+replicas+`}}`),
			metav1.PatchOptions{FieldManager: manager}, "scale")
		require.NoError(t, err)
	}
	for _, replicas := range []string{"3", "2", "0"} {
		scale("kubectl", replicas)
		scaled, err := c.Rescale(t.Context(), objs, ns)
		require.NoError(t, err)
		require.Len(t, scaled, 1, replicas)
		scaled, err = c.Rescale(t.Context(), objs, ns)
		require.NoError(t, err)
		require.Empty(t, scaled)
	}
	scale("cluster-proportional-autoscaler", "2")
	scaled, err := c.Rescale(t.Context(), objs, ns)
	require.NoError(t, err)
	require.Empty(t, scaled)

	scale("kubectl", "3")
	autoscaler := "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}"
	apply(t, c, ns, autoscaler)
	scaled, err = c.Rescale(t.Context(), objs, ns)
	require.NoError(t, err)
	require.Empty(t, scaled)
}
