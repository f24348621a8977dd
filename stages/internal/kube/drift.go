package kube

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
