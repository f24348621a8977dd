package kube

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Yield gives up what field managers own in objects that somebody else applies by now, who
// can then take fields away. Nothing else of the objects changes. One that nobody else
// applies stays as it is. namespace is for objects that name none.
func (c *Client) Yield(ctx context.Context, objs []*unstructured.Unstructured, namespace string, managers ...string) error {
	for _, o := range objs {
		what := "leave " + describe(o) + " to who applies it now"
		api, err := c.Resource(ctx, o.GroupVersionKind(), cmp.Or(o.GetNamespace(), namespace))
		if err != nil {
			return err
		}
		err = c.Retry(ctx, what, func(ctx context.Context) error { return yield(ctx, api, o.GetName(), managers) })
		if ifThere(err) != nil {
			return err
		}
	}
	return nil
}

func yield(ctx context.Context, api dynamic.ResourceInterface, name string, managers []string) error {
	for {
		o, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		left, changed := without(o.GetManagedFields(), managers)
		if !changed {
			return nil
		}
		_, err = patched(ctx, api, name, map[string]any{"metadata": map[string]any{"resourceVersion": o.GetResourceVersion(), "managedFields": left}})
		if apierrors.IsConflict(err) && ctx.Err() == nil { // somebody wrote to it in between
			continue
		}
		return err
	}
}

// without leaves out the entries of managers, where somebody else applies the object.
func without(all []metav1.ManagedFieldsEntry, managers []string) (left []metav1.ManagedFieldsEntry, changed bool) {
	left = slices.DeleteFunc(slices.Clone(all), func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "" && slices.Contains(managers, f.Manager)
	})
	applied := slices.ContainsFunc(left, func(f metav1.ManagedFieldsEntry) bool { return f.Operation == metav1.ManagedFieldsOperationApply })
	return left, applied && len(left) < len(all)
}
