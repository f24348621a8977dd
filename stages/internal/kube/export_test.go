package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// Drift lists the objects that applying would make or change. It writes nothing.
func (c *Client) Drift(ctx context.Context, objs []*unstructured.Unstructured, opts ApplyOptions) ([]Applied, error) {
	planned, err := c.Planned(plan.Verify("drift"))
	if err != nil {
		return nil, err
	}
	var out []Applied
	for _, o := range objs {
		a, err := planned.applyOne(ctx, o, opts)
		if err != nil {
			return nil, err
		}
		if a.Change != Unchanged {
			out = append(out, a)
		}
	}
	return out, nil
}
