package infrastructure

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
	"github.com/slipway-sh/slipway/stages/internal/render"
	"github.com/slipway-sh/slipway/stages/lint"
)

// apps are the objects that Argo CD makes of the tree: it would take over what has their
// names, and the destroy would take that along. Those in namespaces that Slipway made are left
// out: all that is there goes with them. What cannot be rendered here is not looked for.
func (e *expected) apps(ctx context.Context, in *contract.TreeValues, build lint.BuildTree) ([]kube.Member, error) {
	if in == nil {
		return nil, nil
	}
	var cluster render.ChartOptions
	if err := cluster.ForCluster(ctx, e.client); err != nil {
		return nil, err
	}
	parts, err := lint.Apps(ctx, e.release, contract.RenderInput{
		Deployment: e.env.Deployment, Kubernetes: cluster.Kubernetes.Version, APIs: cluster.APIs, Apps: in,
	}, build)
	if err != nil {
		return nil, fmt.Errorf("render the apps: %w", err)
	}
	e.applications = map[string]bool{}
	var out []kube.Member
	for _, part := range parts {
		if part.Err != nil {
			e.env.Logger.Warn("it is not known what an app brings", "app", part.Component, "error", part.Err)
			continue
		}
		var objs []*unstructured.Unstructured
		for _, object := range part.Objects {
			o := &unstructured.Unstructured{Object: object}
			if o.GetKind() == "Application" {
				e.applications[o.GetName()] = true
			}
			objs = append(objs, o)
		}
		members, err := e.client.MembersOf(ctx, objs, part.Namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, members...)
	}
	if err := e.noteApplications(ctx); err != nil {
		return nil, err
	}
	return e.elsewhere(ctx, out)
}

// noteApplications notes the Applications of the deployment that are there, which the release
// may have no more, or under another name. Without any it has brought nothing yet: what is
// there and marked is of an Argo CD of somebody else's.
func (e *expected) noteApplications(ctx context.Context) error {
	engine := e.release.Engine().Namespace
	apps, found, err := applications(ctx, e.client, engine)
	if err != nil {
		return err
	}
	r := removal.Remover{Client: e.client, Kubeconfig: e.env.Kubeconfig, Deployment: e.env.Deployment, Log: e.env.Logger}
	listed, err := r.Listed(ctx, removal.RecordOf(e.release).Components)
	if err != nil {
		return err
	}
	projects := argo.Projects{}
	projects.Add(found)
	own := origin{deployment: e.env.Deployment, argo: engine, listed: listed, projects: projects}.platforms(apps)
	if !slices.ContainsFunc(apps, func(a unstructured.Unstructured) bool { return own[a.GetUID()] }) {
		e.applications = nil
		return nil
	}
	for _, a := range apps {
		if a.GetKind() == "Application" && own[a.GetUID()] {
			e.applications[a.GetName()] = true
		}
	}
	return nil
}

// brought reports whether an object of an app is the deployment's.
func (e *expected) brought(o *unstructured.Unstructured) bool {
	return e.owns(o) || e.applications != nil && kube.DeploymentOf(o.GetLabels()) == "" && kube.BroughtBy(o, e.applications)
}
