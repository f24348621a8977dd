package kube

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SetNamespace gives each object of a kind that has namespaces, and that names none, the
// namespace. A kind that the API server does not know may be defined by another object.
func (c *Client) SetNamespace(ctx context.Context, objs []*unstructured.Unstructured, namespace string) error {
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

// MembersOf are the members that objects are once Apply has applied them.
func (c *Client) MembersOf(ctx context.Context, objs []*unstructured.Unstructured, namespace string) ([]Member, error) {
	placed := make([]*unstructured.Unstructured, len(objs))
	for i, o := range objs {
		placed[i] = o.DeepCopy()
	}
	if err := c.SetNamespace(ctx, placed, cmp.Or(namespace, metav1.NamespaceDefault)); err != nil {
		return nil, err
	}
	out := make([]Member, len(placed))
	for i, o := range placed {
		out[i] = MemberOf(o)
	}
	return out, nil
}

// scoped gives members the namespace that objects of their kind have: a member that was noted before
// its kind was known may have a namespace where the kind has none. Unknown kinds stay as they are.
func (c *Client) scoped(ctx context.Context, members []Member) ([]Member, error) {
	unknown := map[schema.GroupVersionKind]bool{}
	for i, m := range members {
		if unknown[m.Kind] {
			continue
		}
		_, namespaced, err := c.resource(ctx, m.Kind, m.Namespace)
		switch {
		case meta.IsNoMatchError(err):
			unknown[m.Kind] = true
		case err != nil:
			return nil, err
		case namespaced:
			members[i].Namespace = cmp.Or(m.Namespace, metav1.NamespaceDefault)
		default:
			members[i].Namespace = ""
		}
	}
	return members, nil
}
