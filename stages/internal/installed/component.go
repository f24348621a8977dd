package installed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// Listed are the objects that the deployment wrote down before it applied them for components.
func Listed(ctx context.Context, c *kube.Client, components []Component) ([]kube.Member, error) {
	var out []kube.Member
	for _, component := range components {
		if component.Apps {
			continue
		}
		members, err := c.Members(ctx, kube.ObjectsOf(component.Name))
		if err != nil {
			return nil, err
		}
		out = append(out, members...)
	}
	return out, nil
}

// Dropped removes the components of all that are no longer installed, except objects that an
// installed component or an Application has now, and prepared, which are made besides components.
// It returns the components and what it deleted of them.
func (r *Remover) Dropped(ctx context.Context, all []Component, installed []string, prepared []kube.Member) (components, objects []string, err error) {
	stays := func(c Component) bool { return c.Apps || slices.Contains(installed, c.Name) }
	stay, err := Listed(ctx, r.Client, slices.DeleteFunc(slices.Clone(all), func(c Component) bool { return !stays(c) }))
	if err != nil {
		return nil, nil, err
	}
	stay = append(stay, prepared...)
	for _, c := range slices.DeleteFunc(slices.Clone(all), stays) {
		deleted, err := r.Component(ctx, c, func(m kube.Member) bool { return slices.ContainsFunc(stay, m.Same) })
		if err != nil {
			return components, objects, err
		}
		if len(deleted) > 0 {
			components, objects = append(components, c.Name), append(objects, deleted...)
		}
	}
	return components, objects, nil
}

// Component removes what Slipway installed for a component and waits until it is gone: the objects
// of its list, with the hooks of its chart before and after. What data goes with stays, and so
// does what keep, which may be nil, says of: objects that another component has now. It
// returns what it deleted; nothing if there is nothing of the component.
func (r *Remover) Component(ctx context.Context, c Component, keep func(kube.Member) bool) ([]string, error) {
	members, err := r.Client.Members(ctx, kube.ObjectsOf(c.Name))
	if err != nil {
		return nil, err
	}
	hooks, err := r.hooks(ctx, c, keep)
	if err != nil {
		return nil, err
	}
	if keep != nil {
		members = slices.DeleteFunc(members, keep)
	}
	slices.SortStableFunc(members, func(a, b kube.Member) int { return rank(a) - rank(b) })
	hooked, err := r.run(ctx, c, hooks, release.HookPreDelete)
	if err != nil {
		return nil, err
	}
	members, ofHooks, err := r.withoutHooks(ctx, members, hooks)
	if err != nil {
		return nil, err
	}
	deleted, err := r.discard(ctx, "what "+c.Name+" is made of", members)
	if err != nil {
		return nil, err
	}
	if hooked {
		if _, err := r.run(ctx, c, hooks, release.HookPostDelete); err != nil {
			return nil, err
		}
	}
	made, err := r.discard(ctx, "what the hooks of "+c.Name+" made", ofHooks)
	if err != nil {
		return nil, err
	}
	for _, h := range hooks { // an older list has none of them
		for _, o := range h.Objects {
			if _, err := r.Client.DeleteOurs(ctx, kube.MemberOf(o), r.Deployment, metav1.DeletePropagationBackground); err != nil {
				return nil, err
			}
		}
	}
	var names []string
	for _, m := range append(deleted, made...) {
		names = append(names, m.String())
	}
	return names, r.Client.Forget(ctx, r.Deployment, c.Name)
}

// discard deletes those of members that are the deployment's, waits until they are gone, and returns
// them.
func (r *Remover) discard(ctx context.Context, what string, members []kube.Member) (deleted []kube.Member, err error) {
	for _, m := range members {
		asked, err := r.Client.DeleteOurs(ctx, m, r.Deployment, metav1.DeletePropagationForeground)
		if err != nil {
			return nil, err
		}
		if asked {
			deleted = append(deleted, m)
		}
	}
	return deleted, r.Gone(ctx, what, r.Left(deleted))
}

// withoutHooks separates members from those of the chart's hooks, also earlier ones: hooks that run
// after the deletion may need an account or a password that hooks have made before the install.
func (r *Remover) withoutHooks(ctx context.Context, members []kube.Member, hooks []Hook) (other, ofHooks []kube.Member, err error) {
	if !slices.ContainsFunc(hooks, func(h Hook) bool { return h.On(release.HookPostDelete) }) {
		return members, nil, nil
	}
	for _, m := range members {
		live, err := r.Client.Live(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		if live != nil && kube.IsHook(live) {
			ofHooks = append(ofHooks, m)
		} else {
			other = append(other, m)
		}
	}
	return other, ofHooks, nil
}

// hooks are those of a component's chart, but for objects that keep says stay.
func (r *Remover) hooks(ctx context.Context, c Component, keep func(kube.Member) bool) ([]Hook, error) {
	note, err := r.Client.Notes(ctx, r.Deployment, kube.ChartOf(c.Name))
	if err != nil || note["hooks"] == "" {
		return nil, err
	}
	text, err := Unpack(note["hooks"])
	if err != nil {
		return nil, fmt.Errorf("read the hooks of the chart %s: %w", c.Name, err)
	}
	parts, err := Parse(text)
	for i, h := range parts.Hooks {
		parts.Hooks[i].Objects = slices.DeleteFunc(h.Objects, func(o *unstructured.Unstructured) bool { return keep != nil && keep(kube.MemberOf(o)) })
	}
	return parts.Hooks, err
}

// run runs the hooks of an event, and reports whether that succeeded. A component whose hooks fail
// goes without them; where they could not run because the cluster did not answer, or the run ends,
// that is an error, and the next removal runs them.
func (r *Remover) run(ctx context.Context, c Component, hooks []Hook, event release.HookEvent) (bool, error) {
	if r.Client.Plan != nil || !slices.ContainsFunc(hooks, func(h Hook) bool { return h.On(event) }) {
		return true, nil
	}
	err := Runner{Client: r.Client, Deployment: r.Deployment, Limit: r.Limit(), Job: func(ctx context.Context, namespace, name string) error {
		w := &readiness.JobWatch{Client: r.Client, Namespace: namespace, Name: name, Every: kube.Poll}
		if err := r.Client.WaitFor(ctx, "job "+namespace+"/"+name+" to complete", kube.Poll, w.Look); err != nil {
			return err
		}
		if w.Failure != "" {
			return errors.New(strings.Join([]string{"job", namespace + "/" + name + ":", w.Failure}, " "))
		}
		return nil
	}}.Run(ctx, hooks, event)
	if err == nil {
		return true, nil
	}
	if cut := r.cutShort(ctx, c, err); cut != nil {
		return false, cut
	}
	r.Log.Warn("a chart's hooks fail; it is removed without them", "component", c.Name, "error", err)
	return false, nil
}

// cutShort is the error of hooks that did not fail themselves; nil if they did.
func (r *Remover) cutShort(ctx context.Context, c Component, err error) error {
	// A webhook whose component is gone already never answers again.
	webhook := strings.Contains(err.Error(), "failed calling webhook")
	if ctx.Err() != nil || kube.Transient(err) && !webhook {
		return err
	}
	// A wait goes on while the API server does not answer, and its error says so in words only.
	if _, silent := r.Client.Notes(ctx, "", kube.ChartOf(c.Name)); silent != nil {
		return errors.Join(err, silent)
	}
	return nil
}

// Left looks for those of members that are there and the deployment's.
func (r *Remover) Left(members []kube.Member) Look {
	return func(ctx context.Context) ([]unstructured.Unstructured, error) {
		var out []unstructured.Unstructured
		for _, m := range members {
			live, err := r.Client.Live(ctx, m)
			if err != nil {
				return nil, err
			}
			if live != nil && !m.HasData() && !kube.Keeps(live) && kube.DeploymentOf(live.GetLabels()) == r.Deployment {
				out = append(out, *live)
			}
		}
		return out, nil
	}
}

// rank has what intercepts requests to the API server go first: they fail when what it stands for
// is gone.
func rank(m kube.Member) int {
	if slices.Contains([]string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService"}, m.Kind.Kind) {
		return 0
	}
	return 1
}
