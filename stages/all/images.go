package all

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/lint"
	"github.com/slipway-sh/slipway/stages/orchestrator"
)

// Contents is what is known of a platform release before it is installed: see lint.Contents.
// Steps of its phases that there are not are among what is unread.
func Contents(ctx context.Context, r *platform.Release, s contract.RenderInput) (contract.Contents, error) {
	has, err := lint.Contents(ctx, r, s, tree, objects)
	has.Unread = append(has.Unread, phases(r)...)
	return has, err
}

// Render is what an install of a platform release applies: see lint.Render.
func Render(ctx context.Context, r *platform.Release, s contract.RenderInput) ([]contract.Rendered, error) {
	return lint.Render(ctx, r, s, tree, objects)
}

func objects(r *platform.Release, s contract.RenderInput) ([]*unstructured.Unstructured, error) {
	return orchestrator.Objects(r, s.Deployment, *s.Projects, s.Apps, s.Elsewhere)
}

func tree(r *platform.Release, deployment string, in contract.TreeValues) (lint.Tree, error) {
	files, err := orchestrator.Tree(r, deployment, in)
	return lint.Tree{Files: files, Chart: orchestrator.RootChart, Values: orchestrator.RootValues}, err
}
