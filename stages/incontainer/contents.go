package incontainer

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/document"
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

// Render is what an install of a platform release applies, in its order, as far as that is known
// without a cluster.
func Render(ctx context.Context, r *platform.Release, s contract.RenderInput) ([]contract.Rendered, error) {
	s.Suites, s.Off = nil, nil
	has, err := lint.Contents(ctx, r, s, tree, objects)
	return has.Rendered, err
}

func objects(r *platform.Release, s contract.RenderInput) ([]*unstructured.Unstructured, error) {
	return orchestrator.Objects(r, s.Deployment, *s.Projects, s.Apps, s.Elsewhere)
}

func tree(r *platform.Release, deployment string, in contract.TreeValues) (lint.Tree, error) {
	files, err := orchestrator.Tree(r, deployment, in)
	return lint.Tree{Files: files, Chart: orchestrator.RootChart, Values: orchestrator.RootValues}, err
}

// phases are the steps of a release's phases that Slipway does not have.
func phases(r *platform.Release) (unknown []contract.Unread) {
	known := append(Steps(nil).Names(), contract.NodeKey().String(), contract.NodeRemoveKey().String(), contract.CheckEarlierSpec().String())
	for _, d := range r.Data {
		known = append(known, contract.BackupDataKey(d.Name).String())
	}
	for i, p := range r.Phases {
		for j, name := range p.Steps {
			if slices.Contains(known, name) {
				continue
			}
			err := fmt.Errorf("%s is no step of Slipway's own", name)
			if meant := document.Nearest(name, known); meant != "" {
				err = fmt.Errorf("%w; did you mean %s?", err, meant)
			}
			unknown = append(unknown, contract.Unread{Component: "the phases", File: platform.File, Line: r.Line(fmt.Sprintf("phases[%d].steps[%d]", i, j)), Err: err})
		}
	}
	return unknown
}
