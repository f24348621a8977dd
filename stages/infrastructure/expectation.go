package infrastructure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
	"github.com/slipway-sh/slipway/stages/internal/render"
	"github.com/slipway-sh/slipway/stages/step"
)

// expected finds what a platform is made of.
type expected struct {
	client  *kube.Client
	env     *step.Env
	release *platform.Release

	// releases are the records of Helm releases that have a component's name and are
	// somebody else's.
	releases []unstructured.Unstructured
	// applications are those of the deployment, by name; what they brought is its own.
	applications map[string]bool
	// namespaces are those of the deployment; nil: what their labels say counts.
	namespaces map[string]bool
}

// owns reports whether an object is the deployment's. Of a namespace in a cluster of others, the
// label alone does not say that: whoever may make namespaces has made it, and given it the label,
// before the deployment could.
func (e *expected) owns(o *unstructured.Unstructured) bool {
	return kube.Ours(o, e.env.Deployment) && (o.GetKind() != "Namespace" || e.namespaces == nil || e.namespaces[o.GetName()])
}

// findNamespaces finds the namespaces of the deployment: those in its list. Before the first
// install there is none but that of the checks, which run before it. An install that was killed
// early has no list.
func (e *expected) findNamespaces(ctx context.Context) error {
	if !e.env.Existing {
		return nil
	}
	system := kube.Member{Kind: core("").GroupVersion().WithKind("Namespace"), Name: kube.SystemNamespace}
	live, err := e.client.Live(ctx, system)
	if err != nil {
		return err
	}
	own := map[string]bool{kube.SystemNamespace: true, checksNamespace(e.env.Deployment): true}
	if live != nil && kube.Ours(live, e.env.Deployment) {
		listed, err := removal.PrerequisiteNamespaces(ctx, e.client)
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

// objects are all objects of the platform, by kind and name at least.
func (e *expected) objects(ctx context.Context, in contract.OwnershipInput) ([]*unstructured.Unstructured, error) {
	out := e.prerequisites(in)
	for _, component := range in.Components {
		c, ok := e.release.Component(component.Component)
		if !ok {
			return nil, fmt.Errorf("platform %s %s has no component %s", e.release.Name, e.release.Version, component.Component)
		}
		objs, err := e.component(ctx, c, component)
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", c.Name, err)
		}
		if err := e.client.Place(ctx, objs, c.Namespace); err != nil {
			return nil, err
		}
		out = append(out, objs...)
	}
	return out, nil
}

// prerequisites are the objects that are made before any component is.
func (e *expected) prerequisites(in contract.OwnershipInput) []*unstructured.Unstructured {
	members, v1 := removal.Prerequisites(e.release), core("").GroupVersion()
	for _, name := range []string{kube.SystemNamespace, checksNamespace(e.env.Deployment)} {
		members = append(members, kube.Member{Kind: v1.WithKind("Namespace"), Name: name})
	}
	if in.PullSecret {
		for _, ns := range e.release.Namespaces {
			members = append(members, kube.Member{Kind: v1.WithKind("Secret"), Namespace: ns.Name, Name: kube.PullSecret})
		}
	}
	out := make([]*unstructured.Unstructured, len(members))
	for i, m := range members {
		out[i] = &unstructured.Unstructured{}
		out[i].SetGroupVersionKind(m.Kind)
		out[i].SetNamespace(m.Namespace)
		out[i].SetName(m.Name)
	}
	return out
}

func (e *expected) component(ctx context.Context, c platform.Component, in contract.ComponentInput) ([]*unstructured.Unstructured, error) {
	switch c.Kind {
	case platform.Chart:
		return e.chart(ctx, c, in)
	case platform.Adopted:
		return e.adopted(ctx, c, in)
	case platform.Manifests, platform.Job, platform.AppSet:
		return render.Manifests(ctx, e.release.Files(), os.DirFS(filepath.Join(e.env.BundleDir, "manifests")), c)
	}
	return nil, nil
}

// adopted are the objects of a component that Argo CD takes over, until it has. Those in
// namespaces that Slipway made are left out: what Argo CD made there has no label, and is
// there again after a destroy that was interrupted.
func (e *expected) adopted(ctx context.Context, c platform.Component, in contract.ComponentInput) ([]*unstructured.Unstructured, error) {
	app, err := e.client.Live(ctx, argo.Member(e.release.Engine().Namespace, c.Name))
	if err != nil {
		return nil, err
	}
	if app != nil && kube.DeploymentOf(app.GetLabels()) == e.env.Deployment && app.GetLabels()[kube.AdoptedLabel] != "" {
		return nil, nil
	}
	objs, err := e.chart(ctx, c, in)
	if err != nil {
		return nil, err
	}
	return e.elsewhere(ctx, objs)
}

// elsewhere are those of objs that are in no namespace that Slipway made.
func (e *expected) elsewhere(ctx context.Context, objs []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	namespaces, err := e.client.List(ctx, core("namespaces"), "", "")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(objs, func(o *unstructured.Unstructured) bool {
		return slices.ContainsFunc(namespaces, func(ns unstructured.Unstructured) bool {
			return ns.GetName() == o.GetNamespace() && kube.MadeNamespace(ns.GetLabels(), e.env.Deployment) && e.owns(&ns)
		})
	}), nil
}

// chart are the objects that a chart renders to in this cluster, its definitions and what
// its hooks make: these carry no label.
func (e *expected) chart(ctx context.Context, c platform.Component, in contract.ComponentInput) ([]*unstructured.Unstructured, error) {
	ch, err := render.LoadChart(ctx, e.release.Files(), c.Path)
	if err != nil {
		return nil, err
	}
	values, err := render.Values(e.release.Files(), c, in)
	if err != nil {
		return nil, err
	}
	if err := e.noteRelease(ctx, c); err != nil {
		return nil, err
	}
	return render.InCluster(ctx, e.client, c, ch, values)
}

// noteRelease notes a Helm release that has a component's name and is somebody else's.
func (e *expected) noteRelease(ctx context.Context, c platform.Component) error {
	records, err := e.client.List(ctx, core("secrets"), c.Namespace, "owner=helm,name="+c.Name)
	if err != nil || len(records) == 0 {
		return err
	}
	ours, err := removal.OwnsRelease(ctx, e.client, e.env.Deployment, c.Namespace, c.Name)
	if err == nil && !ours {
		e.releases = append(e.releases, records...)
	}
	return err
}

func isRelease(o *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(o.Object, "type")
	return kind == helmSecret
}
