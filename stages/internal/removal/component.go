package removal

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Component removes what Slipway installed for a component and waits until it is gone: the
// objects of its set, and its Helm release. What data goes with stays, and so
// does what keep, which may be nil, says of: objects that another component has now. It
// returns what it deleted; nothing if there is nothing of the component.
func (r *Remover) Component(ctx context.Context, c Component, keep func(kube.Member) bool) ([]string, error) {
	members, err := r.Client.Members(ctx, kube.ObjectsOf(c.Name))
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
		members = slices.DeleteFunc(members, func(m kube.Member) bool { return slices.ContainsFunc(chart.all, m.Same) })
		// Helm deletes them, but not what intercepts requests before all else.
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
		for _, m := range chart.members { // the claims that they leave are found then
			if live, err := r.Client.Live(ctx, m); err != nil {
				return nil, err
			} else if live == nil {
				continue
			} else if err := r.Client.MarkClaims(ctx, live, r.Deployment); err != nil {
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
	return names, r.Client.Forget(ctx, r.Deployment, c.Name)
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
