package infrastructure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
	"github.com/slipway-sh/slipway/stages/lint"
	"github.com/slipway-sh/slipway/stages/step"
)

type expected struct {
	client  *kube.Client
	env     *step.Env
	release *platform.Release

	// applications are those of the deployment, by name; what they brought is its own.
	applications map[string]bool
	// namespaces are those of the deployment; nil: what their labels say counts.
	namespaces map[string]bool
}

// owns reports whether an object is the deployment's. In an existing cluster, the label of a namespace
// does not prove that: somebody may have made the namespace, with the label, before the first install.
func (e *expected) owns(o *unstructured.Unstructured) bool {
	return kube.Ours(o, e.env.Deployment) && (o.GetKind() != "Namespace" || e.namespaces == nil || e.namespaces[o.GetName()])
}

// findNamespaces finds the namespaces in the deployment's list. Before the first install there is only
// the namespace of the checks. An install that was killed early has no list.
func (e *expected) findNamespaces(ctx context.Context) error {
	if !e.env.Existing {
		return nil
	}
	live, err := e.client.Namespace(ctx, kube.SystemNamespace)
	if err != nil {
		return err
	}
	own := map[string]bool{kube.SystemNamespace: true, kube.ChecksNamespace(e.env.Deployment): true}
	if live != nil && kube.Ours(live, e.env.Deployment) {
		listed, err := installed.PrerequisiteNamespaces(ctx, e.client)
		if err != nil || listed == nil {
			return err
		}
		for _, name := range listed {
			own[name] = true
		}
	}
	e.namespaces = own
	return nil
}

func (e *expected) objects(ctx context.Context, in contract.OwnershipInput) ([]kube.Member, error) {
	out := e.prerequisites(in)
	for _, component := range in.Components {
		c, ok := e.release.Component(component.Component)
		if !ok {
			return nil, fmt.Errorf("platform %s %s has no component %s", e.release.Name, e.release.Version, component.Component)
		}
		members, err := e.component(ctx, c, component)
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", c.Name, err)
		}
		out = append(out, members...)
	}
	return out, nil
}

// prerequisites are the objects that are made before any component is.
func (e *expected) prerequisites(in contract.OwnershipInput) []kube.Member {
	out, v1 := installed.Prerequisites(e.release), corev1.SchemeGroupVersion
	for _, name := range []string{kube.SystemNamespace, kube.ChecksNamespace(e.env.Deployment)} {
		out = append(out, kube.Member{Kind: v1.WithKind("Namespace"), Name: name})
	}
	if in.PullSecret {
		for _, ns := range e.release.Namespaces {
			out = append(out, kube.Member{Kind: v1.WithKind("Secret"), Namespace: ns.Name, Name: kube.PullSecret})
		}
	}
	return out
}

// component are the objects of a component. An adopted one has none once Argo CD has taken it over, and
// before that none in Slipway's namespaces: what Argo CD left there after a destroy has no label.
func (e *expected) component(ctx context.Context, c platform.Component, in contract.ComponentInput) (out []kube.Member, err error) {
	var objs []*unstructured.Unstructured
	switch c.Kind {
	case platform.Adopted:
		app, err := e.client.Live(ctx, argo.Member(e.release.Engine().Namespace, c.Name))
		if err != nil || app != nil && kube.DeploymentOf(app.GetLabels()) == e.env.Deployment && app.GetLabels()[kube.AdoptedLabel] != "" {
			return nil, err
		}
		fallthrough
	case platform.Chart:
		objs, err = e.chart(ctx, c, in)
	case platform.Manifests, platform.Job, platform.AppSet:
		objs, err = render.Manifests(ctx, e.release.Files(), os.DirFS(filepath.Join(e.env.BundleDir, "manifests")), c)
	}
	if err == nil {
		out, err = e.client.MembersOf(ctx, objs, c.Namespace)
	}
	if err == nil && c.Kind == platform.Adopted {
		out, err = e.elsewhere(ctx, out)
	}
	return out, err
}

// elsewhere are those of members that are in no namespace that Slipway made.
func (e *expected) elsewhere(ctx context.Context, members []kube.Member) ([]kube.Member, error) {
	namespaces, err := e.client.List(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "", "")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(members, func(m kube.Member) bool {
		return slices.ContainsFunc(namespaces, func(ns unstructured.Unstructured) bool {
			return ns.GetName() == m.Namespace && kube.MadeNamespace(ns.GetLabels(), e.env.Deployment) && e.owns(&ns)
		})
	}), nil
}

// chart are the objects that a chart renders to in this cluster, crds and hooks among them.
func (e *expected) chart(ctx context.Context, c platform.Component, in contract.ComponentInput) ([]*unstructured.Unstructured, error) {
	ch, err := render.LoadChart(ctx, e.release.Files(), c.Path)
	if err != nil {
		return nil, err
	}
	values, err := render.Values(e.release.Files(), c, in)
	if err != nil {
		return nil, err
	}
	return render.InCluster(ctx, e.client, c, ch, values)
}

// apps are the objects that Argo CD makes of the tree outside of Slipway's namespaces: it would take over
// what has their names, and a destroy would remove that. What cannot be rendered is left out.
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

// noteApplications notes the deployment's present Applications, which the release may have dropped or
// renamed. If there is none, another Argo CD manages the marked objects.
func (e *expected) noteApplications(ctx context.Context) error {
	own, err := installed.Applications(ctx, e.client, e.env.Deployment, installed.RemovalOf(e.release))
	if len(own) == 0 {
		e.applications = nil
	}
	for _, a := range own {
		if a.GetKind() == "Application" {
			e.applications[a.GetName()] = true
		}
	}
	return err
}

// brought reports whether an object of an app is the deployment's.
func (e *expected) brought(o *unstructured.Unstructured) bool {
	return e.owns(o) || e.applications != nil && kube.DeploymentOf(o.GetLabels()) == "" && kube.BroughtBy(o, e.applications)
}
