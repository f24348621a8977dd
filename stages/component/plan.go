package component

import (
	"context"
	"errors"
	"slices"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// plan is converge for a plan: the chart is rendered for the cluster, and its objects, which it
// returns, are compared with those that are there.
func (r *chartRelease) plan(ctx context.Context) ([]*unstructured.Unstructured, error) {
	history, err := r.history(ctx)
	if err != nil {
		return nil, err
	}
	deployed, stale := sortHistory(history)
	if deployed != nil && len(stale) == 0 && r.sameInputs(deployed) {
		objs, err := r.current(ctx, deployed)
		if err != nil {
			return nil, err
		}
		if _, err := r.planObjects(ctx, objs); err != nil {
			return nil, err
		}
		_, err = r.client.Rescale(ctx, objs, r.namespace)
		return objs, err
	}
	var planned *release.Release
	if deployed == nil {
		in := action.NewInstall(r.config)
		in.ReleaseName, in.Namespace, in.SkipCRDs, in.TakeOwnership = r.name, r.namespace, true, true
		in.DryRun, in.DryRunOption = true, "server"
		planned, err = r.bound(ctx, func(changed rendered) (*release.Release, error) {
			in.PostRenderer = changed
			return in.RunWithContext(ctx, r.chart, r.values)
		})
	} else {
		planned, err = r.upgrade(ctx, true)
	}
	if err != nil {
		return nil, badChart(r.name, err)
	}
	objs, err := kube.Decode([]byte(planned.Manifest))
	if err != nil {
		return nil, badChart(r.name, err)
	}
	changes := deployed == nil || len(stale) > 0 || !same(deployed, planned)
	altered, err := r.planObjects(ctx, objs)
	if err != nil {
		return nil, err
	}
	if deployed != nil {
		if err := r.planDropped(ctx, deployed, objs); err != nil {
			return nil, err
		}
	}
	if _, err := r.client.Rescale(ctx, objs, r.namespace); err != nil {
		return nil, err
	}
	if !changes && altered == 0 {
		return objs, nil
	}
	r.client.Plan.Change("upgrade the chart %s", r.name)
	event := release.HookPreUpgrade
	if deployed == nil {
		event = release.HookPreInstall
	}
	return objs, r.planHooks(ctx, planned.Hooks, event)
}

// planObjects compares objects with those in the cluster, and returns how many would be
// made or changed. It names all that the API server refuses.
func (r *chartRelease) planObjects(ctx context.Context, objs []*unstructured.Unstructured) (altered int, err error) {
	var refused []error
	for _, o := range objs {
		applied, err := r.client.Apply(ctx, []*unstructured.Unstructured{o}, kube.ApplyOptions{Force: true, Namespace: r.namespace})
		if err != nil && !errors.Is(err, &fault.Fault{Code: kube.CodeRejected}) {
			return 0, err
		}
		refused = append(refused, err)
		altered += kube.Altered(applied)
	}
	return altered, errors.Join(refused...)
}

// planDropped deletes in a plan what the deployed revision has and the next one has
// not, but for what stays: see kube.ApplySet.
func (r *chartRelease) planDropped(ctx context.Context, deployed *release.Release, objs []*unstructured.Unstructured) error {
	before, err := kube.Decode([]byte(deployed.Manifest))
	if err != nil {
		return badChart(r.name, err)
	}
	now := make([]kube.Member, len(objs))
	for _, all := range [][]*unstructured.Unstructured{before, objs} {
		if err := r.client.Place(ctx, all, r.namespace); err != nil {
			return err
		}
	}
	for i, o := range objs {
		now[i] = kube.MemberOf(o)
	}
	var dropped []kube.Member
	for _, o := range before {
		if m := kube.MemberOf(o); !slices.ContainsFunc(now, m.Same) {
			dropped = append(dropped, m)
		}
	}
	if len(dropped) == 0 {
		return nil
	}
	others, err := r.others(ctx, dropped)
	if err != nil {
		return err
	}
	for _, m := range dropped {
		if slices.ContainsFunc(others, m.Same) {
			continue
		}
		if _, err := r.client.DeleteOurs(ctx, m, r.deployment, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return nil
}

// planHooks tells which Jobs and other objects the hooks of a chart would make: those of
// an event, and of the one after it.
func (r *chartRelease) planHooks(ctx context.Context, hooks []*release.Hook, before release.HookEvent) error {
	after := map[release.HookEvent]release.HookEvent{release.HookPreInstall: release.HookPostInstall, release.HookPreUpgrade: release.HookPostUpgrade}[before]
	for _, h := range hooks {
		if !slices.Contains(h.Events, before) && !slices.Contains(h.Events, after) {
			continue
		}
		objs, err := kube.DecodeRendered([]byte(h.Manifest))
		if err == nil {
			err = r.client.Place(ctx, objs, r.namespace)
		}
		if err != nil {
			return badChart(r.name, err)
		}
		for _, o := range objs {
			r.client.Plan.Tell(contract.PlannedChange{Of: contract.PlanJobs, Action: contract.PlanRun, Name: kube.MemberOf(o).String(), Note: "a hook of the chart " + r.name})
		}
	}
	return nil
}

// planJob tells whether a Job would be carried out, and why.
func (i *installer) planJob(o *unstructured.Unstructured, live *batchv1.Job, there bool, digest string) bool {
	why := "it has not been carried out, or does something else now"
	if there {
		_, failed := kube.JobEnd(live)
		switch {
		case live.Annotations[workAnnotation] != digest:
			why = "what it does has changed"
		case failed != "":
			why = "it has failed: " + failed
		case live.DeletionTimestamp != nil:
			why = "somebody is deleting it"
		default:
			return false
		}
	}
	i.client.Plan.Change("carry out %s", kube.MemberOf(o))
	i.client.Plan.Tell(contract.PlannedChange{Of: contract.PlanJobs, Action: contract.PlanRun, Name: kube.MemberOf(o).String(), Note: why})
	return true
}
