package installed

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// controllerStart is how long the pods of Argo CD's controller may take to start.
const controllerStart = time.Minute

// mine lists the platform's objects of one of Argo CD's kinds, and others in its namespaces.
func (d *deployment) mine(ctx context.Context, gvr schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	if err := d.findApplications(ctx); err != nil {
		return nil, err
	}
	list, err := d.Client.List(ctx, gvr, "", "")
	return slices.DeleteFunc(list, func(o unstructured.Unstructured) bool { return !d.ours(o) }), err
}

// applications deletes the deployment's Applications with what they own. Those that no other
// Application owns go first: Argo CD takes their children in the reverse order of the sync waves.
// Components that Argo CD has adopted follow, and Argo CD itself last, without what it owns: nobody
// would run the cascade. A user's Application in a namespace of the platform goes without what it has
// elsewhere. The error names Applications that somebody makes again and again.
func (d *deployment) applications(ctx context.Context) error {
	limit, stripped := cascadeLimit, len(d.Stripped)
	look := func(ctx context.Context) ([]unstructured.Unstructured, error) {
		return d.mine(ctx, argo.Applications())
	}
	apps, err := look(ctx)
	for rounds := len(apps) + 3; err == nil && len(apps) > 0 && rounds > 0; rounds-- {
		if err := d.inTurn(ctx, "Applications", limit, d.roots(apps), apps); err != nil {
			return err
		}
		if len(d.Stripped) > stripped { // nobody runs the cascade: the rest goes without it
			limit = 0
		}
		apps, err = look(ctx)
	}
	if err != nil || len(apps) == 0 {
		return err
	}
	return d.Gone(ctx, "the Applications", look)
}

// inTurn removes a group of Applications with what they own, those of all that they have made among it,
// and waits until they are gone. At the limit, or when nobody runs the cascade, platform.Finalizers says
// what becomes of those that are left.
func (d *deployment) inTurn(ctx context.Context, what string, limit time.Duration, group, all []unstructured.Unstructured) error {
	if len(group) == 0 {
		return nil
	}
	var names []string
	runs, err := d.controllerRuns(ctx)
	if err != nil {
		return err
	}
	if !runs {
		d.Log.Warn("Argo CD's controller does not run: Applications are removed without it", "applications", kube.Left(group))
		limit = 0
	}
	for _, a := range group {
		names = append(names, nameOf(a))
	}
	going := d.origin().descent(group, all)
	for _, a := range all {
		if !going[a.GetUID()] || !d.platform[a.GetUID()] {
			continue
		}
		if name := nameOf(a); !slices.Contains(names, name) {
			names = append(names, name)
		}
		if err := d.markOwned(ctx, a); err != nil {
			return err
		}
		if runs && a.GetLabels()[kube.AdoptedLabel] != kube.AdoptedEngine {
			if err := argo.Cascade(ctx, d.Client, &a); err != nil {
				return err
			}
		}
	}
	slices.Sort(names)
	d.out.Applications = append(d.out.Applications, names...)
	d.Progress("deleting %s: %s", what, kube.Left(group))
	if err := d.Delete(ctx, group); err != nil {
		return err
	}
	return d.GoneAfter(ctx, limit, what, d.Same(group))
}

// turn says when an Application is removed: only after those of a lower turn.
func turn(a unstructured.Unstructured) int {
	switch a.GetLabels()[kube.AdoptedLabel] {
	case "":
		return 0
	case kube.AdoptedEngine:
		return 2
	}
	return 1
}

// markOwned gives the objects outside of namespaces that an Application has brought the deployment's
// label, by which they are removed if no cascade takes them, as it never takes crds. It leaves out
// namespaces, and CRDs that are older than the deployment, because somebody else made these.
func (d *deployment) markOwned(ctx context.Context, a unstructured.Unstructured) error {
	objs, err := d.broughtBy(ctx, a, func(o argo.Resource) bool { return o.Namespace == "" && o.Kind != "Namespace" })
	if err != nil {
		return err
	}
	for _, o := range objs {
		if o.GetKind() == definitionKind && d.older(o) {
			continue
		}
		if err := d.Client.Label(ctx, &o, map[string]any{kube.DeploymentLabel: d.Deployment}); err != nil {
			return err
		}
	}
	return nil
}

// roots are the Applications that no other one owns, of those whose turn it is.
func (d *deployment) roots(apps []unstructured.Unstructured) []unstructured.Unstructured {
	first := slices.MinFunc(apps, func(a, b unstructured.Unstructured) int { return turn(a) - turn(b) })
	apps = slices.DeleteFunc(slices.Clone(apps), func(a unstructured.Unstructured) bool { return turn(a) != turn(first) })
	others := map[string]bool{}
	for _, a := range apps {
		if !d.platform[a.GetUID()] { // what that says of others counts for nothing
			continue
		}
		names := owned(a)
		delete(names, "Application "+nameOf(a)) // itself
		maps.Copy(others, names)
	}
	free := slices.DeleteFunc(slices.Clone(apps), func(a unstructured.Unstructured) bool { return others["Application "+nameOf(a)] })
	if len(free) == 0 {
		return apps // they own each other
	}
	return free
}

// controllerRuns tells whether the controller of the deployment's Argo CD, which runs the
// cascade, is there and ready, and gives it time to start if there is one, but only once.
func (d *deployment) controllerRuns(ctx context.Context) (bool, error) {
	if d.noController {
		return false, nil
	}
	list, err := d.Client.Workloads(ctx, metav1.NamespaceAll, argo.Controller)
	list = slices.DeleteFunc(list, func(o unstructured.Unstructured) bool {
		return !d.ours(o) || d.Argo != "" && o.GetNamespace() != d.Argo
	})
	if err != nil || len(list) == 0 {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, controllerStart)
	defer cancel()
	err = d.Client.WaitFor(ctx, "Argo CD's controller", kube.Poll, func(ctx context.Context) (bool, string, error) {
		pods, err := d.Client.Kubernetes.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: argo.Controller})
		if err != nil {
			return false, "", err
		}
		ready := slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			return readiness.PodReady(&p) && slices.ContainsFunc(list, func(o unstructured.Unstructured) bool { return o.GetNamespace() == p.Namespace })
		})
		return ready, "its pod is not ready", nil
	})
	if fault.ClassOf(err) == fault.Timeout {
		d.noController = true
		return false, nil
	}
	return err == nil, err
}

// sets removes the deployment's ApplicationSets, and then the Applications that these have made, one set
// after the other as the release says, those of sets that it does not name last.
func (d *deployment) sets(ctx context.Context) error {
	if err := d.orphan(ctx); err != nil || len(d.record.Orphans) == 0 {
		return err
	}
	apps, err := d.mine(ctx, argo.Applications())
	if err != nil {
		return err
	}
	of := map[string][]unstructured.Unstructured{}
	for _, a := range apps {
		if set := d.record.Orphans[nameOf(a)]; set != "" {
			of[set] = append(of[set], a)
		}
	}
	if len(of) == 0 {
		return nil
	}
	for _, s := range d.Rules.Applications {
		group := of[s.Set]
		delete(of, s.Set)
		if err := d.inTurn(ctx, "the Applications of "+s.Set, s.Limit(d.Rules), group, apps); err != nil {
			return err
		}
	}
	var rest []unstructured.Unstructured
	for _, set := range slices.Sorted(maps.Keys(of)) {
		rest = append(rest, of[set]...)
	}
	return d.inTurn(ctx, "the Applications of ApplicationSets", max(cascadeLimit, d.Limit()), rest, apps)
}

// orphan notes what the platform's ApplicationSets have made, and deletes the sets alone.
func (d *deployment) orphan(ctx context.Context) error {
	sets, err := d.mine(ctx, argo.ApplicationSets())
	if err != nil || len(sets) == 0 {
		return err
	}
	apps, err := d.Client.List(ctx, argo.Applications(), metav1.NamespaceAll, "")
	if err != nil {
		return err
	}
	for _, s := range sets {
		for _, a := range apps {
			if d.platform[s.GetUID()] && d.origin().made(s, a) {
				d.record.Orphans[nameOf(a)] = s.GetName()
			}
		}
	}
	if len(d.record.Orphans) > 0 && d.recorded {
		if err := d.record.Write(ctx, d.Client, d.Deployment); err != nil {
			return err
		}
	}
	for i := range sets {
		if err := d.Client.DeleteObject(ctx, &sets[i], metav1.DeletePropagationOrphan); err != nil {
			return err
		}
	}
	d.Progress("removed %d ApplicationSets, and nothing that they have made", len(sets))
	// One that an Application has brought may be made again until that goes.
	return d.Gone(ctx, "the ApplicationSets", d.Same(sets))
}
