package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Create makes objects, in the order in which Apply applies them. One that is there already
// is an error, which apierrors.IsAlreadyExists knows, unless made says that it is the one of
// an attempt whose answer was lost. Objects of a kind that has namespaces name theirs. A
// field that the API server does not know is an error, as it is for Apply. With an error it
// returns the object that was not made, where it is about one.
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
