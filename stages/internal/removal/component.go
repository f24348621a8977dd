package removal

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Component removes what Slipway installed for a component and waits until it is gone: the
// objects of its set, its Jobs, and its Helm release. What data goes with stays, and so
// does what keep, which may be nil, says of: objects that another component has now. It
// returns what it deleted; nothing if there is nothing of the component.
func (r *Remover) Component(ctx context.Context, c Component, keep func(kube.Member) bool) ([]string, error) {
	members, err := r.members(ctx, c)
	if err != nil {
		return nil, err
	}
	chart, err := r.release(ctx, c, keep)
	if err != nil {
		return nil, err
	}
	if keep != nil {
		members = slices.DeleteFunc(members, keep)
	}
	if chart != nil {
		// Helm deletes them too, but not what intercepts requests before all else.
		members = append(members, slices.DeleteFunc(slices.Clone(chart.members), func(m kube.Member) bool { return !intercepts(m) })...)
	}
	slices.SortStableFunc(members, func(a, b kube.Member) int { return rank(a) - rank(b) })
	var deleted []kube.Member
	for _, m := range members {
		asked, err := r.Client.DeleteOurs(ctx, m, r.Deployment, metav1.DeletePropagationForeground)
		if err != nil {
			return nil, err
		}
		if asked {
			deleted = append(deleted, m)
		}
	}
	if chart != nil {
		for _, m := range chart.members {
			if err := r.markClaims(ctx, m); err != nil {
				return nil, err
			}
		}
		if err := r.uninstall(ctx, chart); err != nil {
			return nil, err
		}
		deleted = append(deleted, chart.members...)
	}
	if err := r.Gone(ctx, "what "+c.Name+" is made of", r.Left(deleted)); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(deleted))
	for _, m := range deleted {
		if !slices.Contains(names, m.String()) {
			names = append(names, m.String())
		}
	}
	return names, r.forget(ctx, c)
}

// markClaims has the claims that a StatefulSet leaves found when it is gone.
func (r *Remover) markClaims(ctx context.Context, m kube.Member) error {
	if !m.MakesClaims() {
		return nil
	}
	live, err := r.Client.Live(ctx, m)
	if err != nil || live == nil {
		return err
	}
	return r.Client.MarkClaims(ctx, live, r.Deployment)
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

// intercepts reports whether requests to the API server go through an object: they fail
// when what it stands for is gone.
func intercepts(m kube.Member) bool {
	return slices.Contains([]string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService"}, m.Kind.Kind)
}

func rank(m kube.Member) int {
	if intercepts(m) {
		return 0
	}
	return 1
}

// members are the objects that were applied for a component, and its Jobs.
func (r *Remover) members(ctx context.Context, c Component) ([]kube.Member, error) {
	if c.Moved { // they are those of where it is now
		return nil, nil
	}
	out, err := r.Client.Members(ctx, kube.ObjectsOf(c.Name))
	if err != nil {
		return nil, err
	}
	jobs, err := r.Client.Notes(ctx, kube.JobsOf(c.Name), "which jobs have completed")
	for key := range jobs {
		out = append(out, kube.JobOf(key))
	}
	return out, err
}

// forget deletes the lists of a component that is gone.
func (r *Remover) forget(ctx context.Context, c Component) error {
	if c.Moved {
		return nil
	}
	maps := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for _, name := range []string{kube.ObjectsOf(c.Name), kube.JobsOf(c.Name)} {
		m := kube.Member{Kind: maps, Namespace: kube.SystemNamespace, Name: name}
		if _, err := r.Client.DeleteOurs(ctx, m, r.Deployment, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return nil
}
