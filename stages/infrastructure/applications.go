package infrastructure

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
)

const (
	controllerStart = time.Minute      // for its pods after the cluster was started
	controllerGone  = 20 * time.Second // without a ready pod: it does not come back
)

// mine lists the deployment's objects of one of Argo CD's kinds: those in its namespaces, and
// those that are the platform's.
func (r *remover) mine(gvr schema.GroupVersionResource) removal.Look {
	return func(ctx context.Context) ([]unstructured.Unstructured, error) {
		if err := r.findApplications(ctx); err != nil {
			return nil, err
		}
		list, err := r.Client.List(ctx, gvr, "", "")
		return slices.DeleteFunc(list, func(o unstructured.Unstructured) bool { return !r.ours(o) }), err
	}
}

// applications deletes the deployment's Applications with what they own. Those that no
// other Application owns go first: Argo CD then takes their children in the reverse order
// of the sync waves. What the others may rest on follows: components that Argo CD has
// adopted, and Argo CD itself last, without what it owns: nobody would run the cascade.
// An Application that a user made in a namespace of the platform goes as it is: without a
// finalizer of its own, what it has elsewhere stays. What is left at the deadline, or when nobody runs the cascade, loses its finalizers: its
// objects go with their namespaces.
func (r *remover) applications(ctx context.Context, deadline time.Duration) error {
	apps, err := r.mine(argo.Applications())(ctx)
	if err != nil || len(apps) == 0 {
		return err
	}
	names := make([]string, len(apps))
	for i, a := range apps {
		names[i] = nameOf(a)
	}
	slices.Sort(names)
	r.out.Applications = append(r.out.Applications, names...)
	runs, err := r.controllerRuns(ctx)
	if err != nil {
		return err
	}
	if !runs {
		r.env.Logger.Warn("Argo CD's controller does not run: Applications are removed without it")
		deadline = 0
	}
	for _, a := range apps {
		if !r.platform[a.GetUID()] {
			continue
		}
		if err := r.markOwned(ctx, a); err != nil {
			return err
		}
		if deadline > 0 && !isEngine(a) {
			if err := r.addCascade(ctx, a); err != nil {
				return err
			}
		}
	}
	if err := r.Delete(ctx, argo.Applications(), r.roots(apps)); err != nil {
		return err
	}
	if deadline > 0 {
		r.env.Progress("deleting %d applications", len(apps))
		err := r.cascaded(ctx, deadline)
		if err == nil || ctx.Err() != nil {
			return err
		}
		r.env.Logger.Warn("Applications do not go by themselves", "error", err)
	}
	return r.forceApplications(ctx)
}

// cascaded waits until Argo CD has removed all Applications. Once the roots are
// gone it deletes what they did not own.
func (r *remover) cascaded(ctx context.Context, deadline time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	lastSeen := time.Now()
	return r.Client.WaitFor(ctx, "Argo CD to remove the Applications", 500*time.Millisecond, func(ctx context.Context) (bool, string, error) {
		apps, err := r.mine(argo.Applications())(ctx)
		if err != nil || len(apps) == 0 {
			return err == nil, "", err
		}
		if r.controllerReady(ctx) {
			lastSeen = time.Now()
		} else if time.Since(lastSeen) > controllerGone {
			return false, "", fmt.Errorf("the controller of Argo CD is gone, %s", kube.Left(apps))
		}
		free := slices.DeleteFunc(slices.Clone(r.roots(apps)), func(a unstructured.Unstructured) bool { return a.GetDeletionTimestamp() != nil })
		if err := r.Delete(ctx, argo.Applications(), free); err != nil {
			return false, "", err
		}
		return false, kube.Left(apps), nil
	})
}

// forceApplications deletes every Application that is left and strips it.
func (r *remover) forceApplications(ctx context.Context) error {
	apps, err := r.mine(argo.Applications())(ctx)
	if err != nil {
		return err
	}
	if err := r.Delete(ctx, argo.Applications(), apps); err != nil {
		return err
	}
	if apps, err = r.mine(argo.Applications())(ctx); err != nil {
		return err
	}
	if err := r.Strip(ctx, kube.StuckObjects(argo.Applications(), apps)); err != nil {
		return err
	}
	return r.Gone(ctx, "the Applications", r.mine(argo.Applications()))
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

func isEngine(a unstructured.Unstructured) bool {
	return a.GetLabels()[kube.AdoptedLabel] == kube.AdoptedEngine
}

// markOwned gives the objects outside of namespaces that an Application has brought the
// deployment's label, by which they are removed afterwards: what Argo CD itself owns, what is
// left where an Application goes without the cascade, and definitions, which no cascade
// takes. A definition that is older than the deployment was somebody else's. Namespaces are
// left out: by the label they are not removed.
func (r *remover) markOwned(ctx context.Context, a unstructured.Unstructured) error {
	objs, err := r.broughtBy(ctx, a, func(o argo.Resource) bool { return o.Namespace == "" && o.Kind != "Namespace" })
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{kube.DeploymentLabel: r.Deployment}}})
	if err != nil {
		return err
	}
	for _, o := range objs {
		if o.GetKind() == definitionKind && r.older(o) {
			continue
		}
		api, err := r.Client.Resource(ctx, o.GroupVersionKind(), "")
		if err != nil {
			return err
		}
		err = r.Client.Retry(ctx, "label "+o.GetKind()+" "+o.GetName(), func(ctx context.Context) error {
			_, err := api.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kube.FieldManager})
			return err
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// roots are the Applications that no other one owns, of those whose turn it is.
func (r *remover) roots(apps []unstructured.Unstructured) []unstructured.Unstructured {
	first := slices.MinFunc(apps, func(a, b unstructured.Unstructured) int { return turn(a) - turn(b) })
	apps = slices.DeleteFunc(slices.Clone(apps), func(a unstructured.Unstructured) bool { return turn(a) != turn(first) })
	others := map[string]bool{}
	for _, a := range apps {
		if !r.platform[a.GetUID()] { // what that says of others counts for nothing
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

// addCascade gives an Application the finalizer that takes its objects along.
func (r *remover) addCascade(ctx context.Context, a unstructured.Unstructured) error {
	has := slices.ContainsFunc(a.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, argo.CascadeFinalizer) })
	if has || a.GetDeletionTimestamp() != nil {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": append(a.GetFinalizers(), argo.CascadeFinalizer)}})
	if err != nil {
		return err
	}
	return r.Client.Patch(ctx, "prepare the deletion of Application "+nameOf(a), argo.Applications(), a.GetNamespace(), a.GetName(), patch)
}

// controllerRuns tells whether the controller of the deployment's Argo CD, which runs the
// cascade, is there and ready, and gives it time to start if there is one.
func (r *remover) controllerRuns(ctx context.Context) (bool, error) {
	list, err := r.Client.Workloads(ctx, metav1.NamespaceAll, argo.Controller)
	list = slices.DeleteFunc(list, func(o unstructured.Unstructured) bool {
		return !r.ours(o) || r.Argo != "" && o.GetNamespace() != r.Argo
	})
	if err != nil || len(list) == 0 {
		return false, err
	}
	r.engines = nil
	for _, o := range list {
		r.engines = append(r.engines, o.GetNamespace())
	}
	ctx, cancel := context.WithTimeout(ctx, controllerStart)
	defer cancel()
	err = r.Client.WaitFor(ctx, "Argo CD's controller", kube.Poll, func(ctx context.Context) (bool, string, error) {
		return r.controllerReady(ctx), "its pod is not ready", nil
	})
	if fault.ClassOf(err) == fault.Timeout {
		return false, nil
	}
	return err == nil, err
}

func (r *remover) controllerReady(ctx context.Context) bool {
	pods, err := r.Client.Kubernetes.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: argo.Controller})
	if err != nil {
		return kube.Transient(err) // an API that is away says nothing about the controller
	}
	return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return slices.Contains(r.engines, p.Namespace) && kube.PodReady(&p) })
}
