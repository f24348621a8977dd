package infrastructure

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/argo"
)

// sets removes the deployment's ApplicationSets without what they have made, and then that:
// the Applications of one set after the other, as the release says, and at last those of
// the sets that it does not name.
func (r *remover) sets(ctx context.Context) error {
	if err := r.orphan(ctx); err != nil || len(r.record.Orphans) == 0 {
		return err
	}
	apps, err := r.mine(ctx, argo.Applications())
	if err != nil {
		return err
	}
	of := map[string][]unstructured.Unstructured{}
	for _, a := range apps {
		if set := r.record.Orphans[nameOf(a)]; set != "" {
			of[set] = append(of[set], a)
		}
	}
	if len(of) == 0 {
		return nil
	}
	for _, s := range r.Rules.Applications {
		group := of[s.Set]
		delete(of, s.Set)
		if err := r.inTurn(ctx, "the Applications of "+s.Set, s.Limit(r.Rules), group, apps); err != nil {
			return err
		}
	}
	var rest []unstructured.Unstructured
	for _, set := range slices.Sorted(maps.Keys(of)) {
		rest = append(rest, of[set]...)
	}
	return r.inTurn(ctx, "the Applications of ApplicationSets", max(cascadeLimit, r.Limit()), rest, apps)
}

// orphan deletes the ApplicationSets, and nothing that they have made. What those of the
// platform have made is noted before.
func (r *remover) orphan(ctx context.Context) error {
	sets, err := r.mine(ctx, argo.ApplicationSets())
	if err != nil || len(sets) == 0 {
		return err
	}
	apps, err := r.Client.List(ctx, argo.Applications(), metav1.NamespaceAll, "")
	if err != nil {
		return err
	}
	for _, s := range sets {
		for _, a := range apps {
			if r.platform[s.GetUID()] && r.origin().made(s, a) {
				r.record.Orphans[nameOf(a)] = s.GetName()
			}
		}
	}
	if len(r.record.Orphans) > 0 && r.recorded {
		if err := r.record.Write(ctx, r.Client, r.Deployment); err != nil {
			return err
		}
	}
	for i := range sets {
		if err := r.Client.DeleteObject(ctx, &sets[i], metav1.DeletePropagationOrphan); err != nil {
			return err
		}
	}
	r.env.Progress("removed %d ApplicationSets, and nothing that they have made", len(sets))
	// One that an Application has brought may be made again until that goes.
	return r.Gone(ctx, "the ApplicationSets", r.Same(sets))
}
