package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Rescale gives every Deployment and StatefulSet of objs that declares no number of replicas
// the one that Kubernetes gives it, 1, where somebody has scaled it: applying leaves that field
// alone. One that runs pods keeps its number if a HorizontalPodAutoscaler targets it, one of
// the cluster or among objs, or if managedFields name a manager that is neither Slipway nor
// kubectl, such as another autoscaler. That of a scaling is there only if the field had a
// manager before. Rescale returns the names of what it has scaled. namespace is for objects
// that name none.
func (c *Client) Rescale(ctx context.Context, objs []*unstructured.Unstructured, namespace string) ([]string, error) {
	var out []string
	for _, o := range objs {
		if o.GetKind() != "Deployment" && o.GetKind() != "StatefulSet" {
			continue
		}
		if _, declared, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas"); declared {
			continue
		}
		ns := cmp.Or(o.GetNamespace(), namespace)
		api, err := c.Resource(ctx, o.GroupVersionKind(), ns)
		if err != nil {
			return out, err
		}
		what := "scale " + describe(o) + " to 1"
		live, err := Retry(ctx, c, what, func(ctx context.Context) (*unstructured.Unstructured, error) {
			return api.Get(ctx, o.GetName(), metav1.GetOptions{})
		})
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return out, err
		}
		n, found, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
		if !found || n == 1 {
			continue
		}
		if n > 1 {
			theirs, err := c.autoscaled(ctx, o, objs, ns)
			if err != nil {
				return out, err
			}
			if theirs || scaledByOthers(live) {
				continue
			}
		}
		err = c.Retry(ctx, what, func(ctx context.Context) error {
			_, err := api.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{FieldManager: FieldManager})
			return err
		})
		if err != nil {
			return out, err
		}
		out = append(out, describe(o))
	}
	return out, nil
}

// autoscaled reports whether a HorizontalPodAutoscaler of a namespace targets o: one of the
// cluster, or one among objs, which may not be there yet.
func (c *Client) autoscaled(ctx context.Context, o *unstructured.Unstructured, objs []*unstructured.Unstructured, namespace string) (bool, error) {
	targets := func(hpa *unstructured.Unstructured) bool {
		ref, _, _ := unstructured.NestedStringMap(hpa.Object, "spec", "scaleTargetRef")
		group, _ := schema.ParseGroupVersion(ref["apiVersion"])
		return ref["kind"] == o.GetKind() && ref["name"] == o.GetName() && group.Group == o.GroupVersionKind().Group
	}
	for _, other := range objs {
		if other.GetKind() == "HorizontalPodAutoscaler" && cmp.Or(other.GetNamespace(), namespace) == namespace && targets(other) {
			return true, nil
		}
	}
	live, err := c.List(ctx, schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}, namespace, "")
	return slices.ContainsFunc(live, func(hpa unstructured.Unstructured) bool { return targets(&hpa) }), err
}

// scaledByOthers reports whether managedFields say that who set an object's number of replicas
// is neither Slipway nor a person with kubectl.
func scaledByOthers(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		if f.Manager == FieldManager || strings.HasPrefix(f.Manager, kubectl) || f.FieldsV1 == nil {
			return false
		}
		set := map[string]any{}
		if json.Unmarshal(f.FieldsV1.Raw, &set) != nil {
			return false
		}
		_, replicas, _ := unstructured.NestedFieldNoCopy(set, "f:spec", "f:replicas")
		return replicas
	})
}
