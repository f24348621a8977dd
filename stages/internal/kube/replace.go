package kube

import (
	"context"
	"encoding/base64"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
)

// replaceable reports whether an object that cannot be applied may be written as a whole. Two
// things only applying cannot do: take away a default that fits a former value, such as
// strategy.rollingUpdate of a Deployment that becomes one of type Recreate; and keep two items
// of a list that have one key, such as two ports of one number.
func replaceable(before *unstructured.Unstructured, err error) bool {
	return (before == nil || !MemberOf(before).HasData()) && (before != nil && apierrors.IsInvalid(err) || untyped(err))
}

// replace writes an object as a whole, with what others have set in it besides its own fields:
// labels, annotations, status, and a number of replicas that obj does not declare.
func replace(ctx context.Context, api dynamic.ResourceInterface, obj *unstructured.Unstructured, how metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	before, err := api.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return api.Create(ctx, obj, metav1.CreateOptions{FieldManager: FieldManager, DryRun: how.DryRun})
	} else if err != nil {
		return nil, err
	}
	after, err := api.Update(ctx, whole(before, obj), metav1.UpdateOptions{FieldManager: FieldManager, DryRun: how.DryRun})
	if apierrors.IsConflict(err) && ctx.Err() == nil { // somebody wrote to it in between
		return replace(ctx, api, obj, how)
	}
	if err != nil || len(how.DryRun) > 0 {
		return after, err
	}
	if err := takeOver(ctx, api, obj.GetName(), FieldManager); err != nil {
		return nil, err
	}
	applied, err := api.Apply(ctx, obj.GetName(), obj, how)
	if untyped(err) {
		return after, nil
	}
	return applied, err
}

// whole is what an object becomes that obj replaces.
func whole(before, obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := obj.DeepCopy()
	for _, field := range []string{"metadata", "status"} {
		if v, has := before.DeepCopy().Object[field]; has {
			out.Object[field] = v
		}
	}
	out.SetLabels(labels.Merge(before.GetLabels(), obj.GetLabels()))
	out.SetAnnotations(labels.Merge(before.GetAnnotations(), obj.GetAnnotations()))
	out.SetManagedFields(nil)
	n, scaled, _ := unstructured.NestedInt64(before.Object, "spec", "replicas")
	spec, is := out.Object["spec"].(map[string]any)
	if _, declared := spec["replicas"]; is && scaled && !declared {
		spec["replicas"] = n
	}
	return out
}

// plainSecret is a Secret with its stringData in data: nobody owns what the API server makes
// of a stringData, and a key that is gone would stay.
func plainSecret(o *unstructured.Unstructured) *unstructured.Unstructured {
	texts, _, _ := unstructured.NestedMap(o.Object, "stringData")
	if o.GetKind() != "Secret" || o.GetAPIVersion() != "v1" || len(texts) == 0 {
		return o
	}
	o = o.DeepCopy()
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range texts {
		text, is := value.(string)
		if !is { // for the API server to refuse
			return o
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(o.Object, "stringData")
	o.Object["data"] = data
	return o
}

// Create makes objects, in the order in which Apply applies them. An existing object is an error,
// which apierrors.IsAlreadyExists knows, unless made says that an attempt whose answer was lost has
// made it. Objects of a kind that has namespaces name theirs. A field that the API server does not
// know is an error, as it is for Apply. With an error about an object, it returns that object.
func (c *Client) Create(ctx context.Context, objs []*unstructured.Unstructured, made func(live *unstructured.Unstructured) bool) (not *unstructured.Unstructured, err error) {
	ranks := byRank(objs)
	for r := rankNamespace; r <= rankLast; r++ {
		for _, i := range ranks[r] {
			if err := c.create(ctx, objs[i], made); err != nil {
				return objs[i], err
			}
		}
		if r == rankDefinition && len(ranks[r]) > 0 {
			if err := c.established(ctx, objs, ranks[r]); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

func (c *Client) create(ctx context.Context, o *unstructured.Unstructured, made func(live *unstructured.Unstructured) bool) error {
	api, err := c.Resource(ctx, o.GroupVersionKind(), o.GetNamespace())
	if err != nil {
		return err
	}
	return c.Retry(ctx, "create "+describe(o), func(ctx context.Context) error {
		_, err := api.Create(ctx, o, metav1.CreateOptions{FieldManager: FieldManager, FieldValidation: metav1.FieldValidationStrict})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		live, failed := api.Get(ctx, o.GetName(), metav1.GetOptions{})
		switch {
		case failed != nil:
			return failed
		case made(live):
			return nil
		}
		return err
	})
}
