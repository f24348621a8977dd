package orchestrator

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// alone is how the root Application is applied: nobody else has anything to add to it.
func alone() kube.ApplyOptions { return kube.ApplyOptions{Force: true, Added: argo.Added} }

// settled waits for the apps, and has the root Application be as Slipway applies it after that,
// too: until Argo CD has removed an Application that somebody has pushed, that may write to it.
func settled(ctx context.Context, c *kube.Client, root *unstructured.Unstructured, begin func() *waiter) (contract.Apps, error) {
	w := begin()
	out, err := w.wait(ctx)
	if err != nil {
		return out, err
	}
	changed, err := c.Drift(ctx, []*unstructured.Unstructured{root}, alone())
	if err != nil || len(changed) == 0 {
		return out, err
	}
	w.env.Progress("the Application %s has changed meanwhile: Slipway applies it again", RootApp)
	if _, err := c.Apply(ctx, []*unstructured.Unstructured{root}, alone()); err != nil {
		return out, err
	}
	return begin().wait(ctx)
}
