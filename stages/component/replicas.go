package component

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// rescale sets replicas to 1, the default of Kubernetes, on every Deployment and StatefulSet of objs
// that declares no number and that somebody has scaled: applying leaves that field alone. A
// workload that runs pods keeps its number if a HorizontalPodAutoscaler targets it, of the cluster or
// among objs, or if managedFields name a manager that is neither Slipway nor kubectl, such as
// another autoscaler. The manager of a scaling is there only if the field had a manager before. It
// returns the names of what it has scaled.
func rescale(ctx context.Context, c *kube.Client, objs []*unstructured.Unstructured) ([]string, error) {
	var out []string
	for _, o := range objs {
		_, declared, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
		if declared || o.GetKind() != "Deployment" && o.GetKind() != "StatefulSet" {
			continue
		}
		m := kube.MemberOf(o)
		live, err := c.Live(ctx, m)
		if err != nil {
			return out, err
		}
		if live == nil {
			continue
		}
		n, found, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
		if !found || n == 1 {
			continue
		}
		if n > 1 {
			theirs, err := autoscaled(ctx, c, o, objs)
			if err != nil {
				return out, err
			}
			if theirs || scaledByOthers(live) {
				continue
			}
		}
		if err := c.PatchObject(ctx, "scale "+m.String()+" to 1", o, map[string]any{"spec": map[string]any{"replicas": 1}}); err != nil {
			return out, err
		}
		out = append(out, m.String())
	}
	return out, nil
}

// autoscaled reports whether a HorizontalPodAutoscaler of its namespace targets o: of the cluster,
// or among objs, which may not be there yet.
func autoscaled(ctx context.Context, c *kube.Client, o *unstructured.Unstructured, objs []*unstructured.Unstructured) (bool, error) {
	targets := func(hpa *unstructured.Unstructured) bool {
		ref, _, _ := unstructured.NestedStringMap(hpa.Object, "spec", "scaleTargetRef")
		group, _ := schema.ParseGroupVersion(ref["apiVersion"])
		return ref["kind"] == o.GetKind() && ref["name"] == o.GetName() && group.Group == o.GroupVersionKind().Group
	}
	for _, other := range objs {
		if other.GetKind() == "HorizontalPodAutoscaler" && other.GetNamespace() == o.GetNamespace() && targets(other) {
			return true, nil
		}
	}
	live, err := c.List(ctx, schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}, o.GetNamespace(), "")
	return slices.ContainsFunc(live, func(hpa unstructured.Unstructured) bool { return targets(&hpa) }), err
}

// scaledByOthers reports whether managedFields say that neither Slipway nor a person with kubectl
// has set an object's number of replicas.
func scaledByOthers(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		set := map[string]any{}
		if f.Manager == kube.FieldManager || strings.HasPrefix(f.Manager, "kubectl") || f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &set) != nil {
			return false
		}
		_, replicas, _ := unstructured.NestedFieldNoCopy(set, "f:spec", "f:replicas")
		return replicas
	})
}
