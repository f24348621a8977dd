package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Place gives each object of a kind that has namespaces, and that names none, the
// namespace. A kind that the API server does not know may be defined by another object.
func (c *Client) Place(ctx context.Context, objs []*unstructured.Unstructured, namespace string) error {
	defined := map[schema.GroupKind]bool{} // to whether it has namespaces
	for _, o := range objs {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		defined[schema.GroupKind{Group: group, Kind: kind}] = scope == "Namespaced"
	}
	for _, o := range objs {
		gvk := o.GroupVersionKind()
		namespaced, known := defined[gvk.GroupKind()]
		if !known {
			_, has, err := c.resource(ctx, gvk, namespace)
			if err != nil && !meta.IsNoMatchError(err) {
				return err
			}
			namespaced = has || err != nil // applying it will say what is wrong
			defined[gvk.GroupKind()] = namespaced
		}
		switch {
		case !namespaced:
			o.SetNamespace("")
		case o.GetNamespace() == "":
			o.SetNamespace(namespace)
		}
	}
	return nil
}
