package kube

import (
	"cmp"
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/stages/internal/dryrun"
)

// Drift lists the objects that applying would make or change: it asks the server and
// writes nothing.
func (c *Client) Drift(ctx context.Context, objs []*unstructured.Unstructured, opts ApplyOptions) ([]Applied, error) {
	var out []Applied
	for _, o := range objs {
		a, err := c.applyOne(dryrun.Context(ctx), o, opts)
		switch {
		case errors.Is(err, dryrun.ErrWouldChange):
			out = append(out, a)
		case err != nil:
			return nil, err
		}
	}
	return out, nil
}

// ScaleUp gives every Deployment and StatefulSet of objs that declares no number of
// replicas one, where somebody scaled it to none: applying leaves that field alone.
// It returns their names.
func (c *Client) ScaleUp(ctx context.Context, objs []*unstructured.Unstructured, namespace string) ([]string, error) {
	var out []string
	for _, o := range objs {
		if o.GetKind() != "Deployment" && o.GetKind() != "StatefulSet" {
			continue
		}
		if _, declared, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas"); declared {
			continue
		}
		api, err := c.Resource(ctx, o.GroupVersionKind(), cmp.Or(o.GetNamespace(), namespace))
		if err != nil {
			return out, err
		}
		what := "scale " + describe(o) + " up"
		live, err := Retry(ctx, c, what, func(ctx context.Context) (*unstructured.Unstructured, error) {
			return api.Get(ctx, o.GetName(), metav1.GetOptions{})
		})
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return out, err
		}
		if n, found, _ := unstructured.NestedInt64(live.Object, "spec", "replicas"); !found || n > 0 {
			continue
		}
		if err := dryrun.Pass(ctx, "%s", what); err != nil {
			return out, err
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
