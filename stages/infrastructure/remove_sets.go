package infrastructure

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// The ConfigMap, in kube.SystemNamespace, that says which Applications the ApplicationSets
// had made, and its key: a removal that is killed after these are gone goes on in the same
// order.
const (
	orphansName = "slipway-orphans"
	orphansKey  = "applications.json"
)

// sets removes the deployment's ApplicationSets without what they have made, and then that:
// the Applications of one set after the other, as the release says, and at last those of
// the sets that it does not name.
func (r *remover) sets(ctx context.Context) error {
	if err := r.orphan(ctx); err != nil || len(r.orphans) == 0 {
		return err
	}
	apps, err := r.mine(argo.Applications())(ctx)
	if err != nil {
		return err
	}
	of := map[string][]unstructured.Unstructured{}
	for _, a := range apps {
		if set := r.orphans[nameOf(a)]; set != "" {
			of[set] = append(of[set], a)
		}
	}
	if len(of) == 0 {
		return nil
	}
	runs, err := r.controllerRuns(ctx)
	if err != nil {
		return err
	}
	for _, s := range r.Rules.Applications {
		group := of[s.Set]
		delete(of, s.Set)
		if err := r.inTurn(ctx, "the Applications of "+s.Set, s.Limit(r.Rules), group, apps, runs); err != nil {
			return err
		}
	}
	var rest []unstructured.Unstructured
	for _, set := range slices.Sorted(maps.Keys(of)) {
		rest = append(rest, of[set]...)
	}
	return r.inTurn(ctx, "the Applications of ApplicationSets", max(cascadeLimit, r.Limit()), rest, apps, runs)
}

// orphan deletes the ApplicationSets, and nothing that they have made. What those of the
// platform have made is noted before.
func (r *remover) orphan(ctx context.Context) error {
	sets, err := r.mine(argo.ApplicationSets())(ctx)
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
				r.orphans[nameOf(a)] = s.GetName()
			}
		}
	}
	if err := r.noteOrphans(ctx); err != nil {
		return err
	}
	for _, s := range sets {
		if err := r.Client.Delete(ctx, argo.ApplicationSets(), s.GetNamespace(), s.GetName(), metav1.DeletePropagationOrphan); err != nil {
			return err
		}
	}
	r.env.Progress("removed %d ApplicationSets, and nothing that they have made", len(sets))
	// One that an Application has brought may be made again until that goes.
	return r.Gone(ctx, "the ApplicationSets", r.sameObjects(sets))
}

// findOrphans reads what a removal before this one has noted.
func (r *remover) findOrphans(ctx context.Context) error {
	r.orphans = map[string]string{}
	notes, err := r.Client.Notes(ctx, orphansName, "which Applications the ApplicationSets had made")
	if err != nil || notes == nil {
		return err
	}
	if err := json.Unmarshal([]byte(notes[orphansKey]), &r.orphans); err != nil {
		return fmt.Errorf("read which Applications the ApplicationSets had made, configmap %s/%s: %w", kube.SystemNamespace, orphansName, err)
	}
	return nil
}

func (r *remover) noteOrphans(ctx context.Context) error {
	if len(r.orphans) == 0 || !r.system { // where it is not, there is nobody to note it for
		return nil
	}
	text, err := json.Marshal(r.orphans)
	if err != nil {
		return fmt.Errorf("encode which Applications the ApplicationSets had made: %w", err)
	}
	return r.Client.KeepNotes(ctx, r.Deployment, orphansName, map[string]string{orphansKey: string(text)})
}

// inTurn removes Applications with what they own, and waits until they are gone. Those that
// are left at the limit lose their finalizers, or end the removal: see platform.Finalizers.
// Of all, those that one of the group has made go with it, and what they own with them. runs
// says whether Argo CD's controller, which removes what they own, is there.
func (r *remover) inTurn(ctx context.Context, what string, limit time.Duration, group, all []unstructured.Unstructured, runs bool) error {
	if len(group) == 0 {
		return nil
	}
	var names []string
	for _, a := range group {
		names = append(names, nameOf(a))
	}
	below := r.origin().descent(group, all)
	for _, a := range all {
		if !below[a.GetUID()] {
			continue
		}
		if err := r.markOwned(ctx, a); err != nil {
			return err
		}
		if !runs {
			continue
		}
		if err := r.addCascade(ctx, a); err != nil {
			return err
		}
	}
	slices.Sort(names)
	r.out.Applications = append(r.out.Applications, names...)
	if !runs {
		r.env.Logger.Warn("Argo CD's controller does not run: Applications are removed without it", "applications", names)
		limit = 0
	}
	if err := r.Delete(ctx, argo.Applications(), group); err != nil {
		return err
	}
	if err := r.GoneAfter(ctx, limit, what, r.sameObjects(group)); err != nil {
		return err
	}
	r.env.Progress("removed %s: %s", what, strings.Join(names, ", "))
	return nil
}
