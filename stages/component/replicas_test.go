package component

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

const (
	scaleWeb   = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: ns}, spec: {template: {spec: {containers: [{name: web, image: i}]}}}}\n"
	atScaleWeb = "/apis/apps/v1/namespaces/ns/deployments/web"
)

func scalable(t *testing.T, manifest string) (*kubetest.API, *kube.Client, []*unstructured.Unstructured) {
	t.Helper()
	api := kubetest.Serve(t)
	c, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	objs, err := kube.Decode([]byte(manifest))
	require.NoError(t, err)
	return api, c, objs
}

// TestWhatWasScaledIsScaledBack: to the one pod that a manifest without replicas has.
func TestWhatWasScaledIsScaledBack(t *testing.T) {
	for _, replicas := range []string{"0", "3"} {
		api, c, objs := scalable(t, scaleWeb)
		_, err := c.Apply(t.Context(), objs, kube.ApplyOptions{})
		require.NoError(t, err)
		scaled, err := rescale(t.Context(), c, objs)
		require.NoError(t, err)
		require.Empty(t, scaled)

		api.Set(t, atScaleWeb, "spec: {replicas: "+replicas+"}")
		p := plan.Verify("web")
		planned, err := c.Planned(p)
		require.NoError(t, err)
		_, err = rescale(t.Context(), planned, objs)
		require.NoError(t, err)
		require.ErrorIs(t, p.Err(), plan.ErrChange)
		scaled, err = rescale(t.Context(), c, objs)
		require.NoError(t, err)
		require.Equal(t, []string{"Deployment ns/web"}, scaled)
		require.EqualValues(t, 1, api.Get(atScaleWeb)["spec"].(map[string]any)["replicas"])

		_, _, declared := scalable(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: ns}, spec: {replicas: "+replicas+"}}")
		api.Set(t, atScaleWeb, "spec: {replicas: "+replicas+"}")
		scaled, err = rescale(t.Context(), c, declared)
		require.NoError(t, err)
		require.Empty(t, scaled, "that is what it declares")
	}
}

// TestWhatSomebodyElseScales keeps its pods, but not none.
func TestWhatSomebodyElseScales(t *testing.T) {
	const (
		hpas  = "/apis/autoscaling/v2/namespaces/"
		ofWeb = "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}"
		inObj = "---\n{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: ns}, " + ofWeb + "}\n"
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
		"another autoscaler":               {path: atScaleWeb, set: by("cluster-proportional-autoscaler"), theirs: true},
		"kubectl scale":                    {path: atScaleWeb, set: by("kubectl")},
		"kubectl edit":                     {path: atScaleWeb, set: by("kubectl-edit")},
		"Slipway":                          {path: atScaleWeb, set: by("slipway")},
	} {
		t.Run(what, func(t *testing.T) {
			api, client, objs := scalable(t, scaleWeb+c.more)
			api.Set(t, atScaleWeb, "{metadata: {name: web, namespace: ns}, spec: {replicas: 3}}")
			if c.path != "" {
				api.Set(t, c.path, c.set)
			}
			scaled, err := rescale(t.Context(), client, objs)
			require.NoError(t, err)
			require.Equal(t, !c.theirs, len(scaled) == 1)

			api.Set(t, atScaleWeb, "spec: {replicas: 0}")
			scaled, err = rescale(t.Context(), client, objs)
			require.NoError(t, err)
			require.Len(t, scaled, 1, "no autoscaler leaves none")
		})
	}
}

// TestRealScalingIsUndone, whatever managedFields say of it: the API server notes who scales
// only where the number of replicas has a manager already.
func TestRealScalingIsUndone(t *testing.T) {
	_, _, c, busybox := realSite(t, "", map[string]string{})
	objs, err := kube.Decode([]byte("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, " +
		"spec: {terminationGracePeriodSeconds: 0, containers: [{name: web, image: '" + busybox + "', imagePullPolicy: IfNotPresent, command: [busybox, sleep, '1000']}]}}}}"))
	require.NoError(t, err)
	_, err = c.Apply(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	scale := func(manager, replicas string) {
		_, err := c.Kubernetes.AppsV1().Deployments("shop").Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":`+replicas+`}}`),
			metav1.PatchOptions{FieldManager: manager}, "scale")
		require.NoError(t, err)
	}
	rescaled := func() []string {
		scaled, err := rescale(t.Context(), c, objs)
		require.NoError(t, err)
		return scaled
	}
	for _, replicas := range []string{"3", "2", "0"} {
		scale("kubectl", replicas)
		require.Len(t, rescaled(), 1, replicas)
		require.Empty(t, rescaled())
	}
	scale("cluster-proportional-autoscaler", "2")
	require.Empty(t, rescaled())

	scale("kubectl", "3")
	autoscaler, err := kube.Decode([]byte("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: shop}, spec: {maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}"))
	require.NoError(t, err)
	_, err = c.Apply(t.Context(), autoscaler, kube.ApplyOptions{})
	require.NoError(t, err)
	require.Empty(t, rescaled())
}
