package removal

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Dropped removes those of all that are not installed any more, or not there, but for objects that one
// that is installed, or an Application, has now, and for those of prepared, which are made
// besides components. It returns the components and what it deleted of them.
func (r *Remover) Dropped(ctx context.Context, all []Component, installed []string, prepared []kube.Member) (components, objects []string, err error) {
	var stays, dropped []Component
	var asked []kube.Member
	for _, c := range all {
		if c.Apps || slices.Contains(installed, c.Name) {
			stays = append(stays, c)
			continue
		}
		listed, there, err := r.listed(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		if there {
			dropped, asked = append(dropped, c), append(asked, listed...)
		}
	}
	if len(dropped) == 0 {
		return nil, nil, nil
	}
	stay, err := r.Has(ctx, stays, asked)
	if err != nil {
		return nil, nil, err
	}
	stay = append(stay, prepared...)
	for _, c := range dropped {
		deleted, err := r.Component(ctx, c, func(m kube.Member) bool { return slices.ContainsFunc(stay, m.Same) })
		if err != nil {
			return components, objects, err
		}
		components, objects = append(components, c.Name), append(objects, deleted...)
	}
	return components, objects, nil
}

// Listed are the objects that the deployment wrote down before it applied them for components:
// in its own lists, and in the records of its Helm releases.
func (r *Remover) Listed(ctx context.Context, components []Component) ([]kube.Member, error) {
	var out []kube.Member
	for _, c := range components {
		members, _, err := r.listed(ctx, c)
		if err != nil {
			return nil, err
		}
		out = append(out, members...)
	}
	return out, nil
}

// listed is Listed of one component. there reports whether there is anything of it, such as the
// record of a Helm release that has no object any more.
func (r *Remover) listed(ctx context.Context, c Component) (out []kube.Member, there bool, err error) {
	if c.Apps {
		return nil, false, nil
	}
	if out, err = r.Client.Members(ctx, kube.ObjectsOf(c.Name)); err != nil {
		return nil, false, err
	}
	chart, err := r.release(ctx, c, nil)
	if chart != nil {
		out = append(out, chart.members...)
	}
	return out, chart != nil || len(out) > 0, err
}

// Has lists what components have, and those of asked that an Application has brought.
func (r *Remover) Has(ctx context.Context, components []Component, asked []kube.Member) ([]kube.Member, error) {
	out, err := r.Listed(ctx, components)
	if err != nil {
		return nil, err
	}
	apps, err := r.applications(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range asked {
		if len(apps.naming[nameOf(m)]) == 0 {
			continue
		}
		live, err := r.Client.Live(ctx, m)
		if err != nil {
			return nil, err
		}
		if live != nil && apps.brought(live) {
			out = append(out, m)
		}
	}
	return out, nil
}

// applications are all Applications of a cluster, by what they name.
type applications struct {
	argo   string // Argo CD's namespace
	naming map[string][]*unstructured.Unstructured
}

func nameOf(m kube.Member) string {
	return m.Kind.GroupKind().String() + " " + m.Namespace + "/" + m.Name
}

func (r *Remover) applications(ctx context.Context) (applications, error) {
	out := applications{argo: r.Argo, naming: map[string][]*unstructured.Unstructured{}}
	all, err := r.Client.List(ctx, argo.Applications(), "", "")
	if err != nil {
		return out, err
	}
	for i := range all {
		app, err := argo.Read(&all[i])
		if err != nil {
			return out, err
		}
		for _, o := range app.Resources {
			name := nameOf(kube.Member{Kind: schema.GroupVersionKind{Group: o.Group, Kind: o.Kind}, Namespace: o.Namespace, Name: o.Name})
			out.naming[name] = append(out.naming[name], &all[i])
		}
	}
	return out, nil
}

// brought reports whether one of the Applications names an object and Argo CD, or another one in
// the cluster, has brought it by that one: what an Application says of itself is the word of
// whoever may write to it.
func (a applications) brought(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(a.naming[nameOf(kube.MemberOf(o))], func(by *unstructured.Unstructured) bool {
		name := by.GetName()
		return argo.Brought(a.argo, by, o) || kube.TrackedBy(o) == name && kube.BroughtBy(o, map[string]bool{name: true})
	})
}
