package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	reachLimit     = time.Minute     // for the API to answer
	skipLimit      = 3 * time.Second // for an API that may be gone
	cascadeLimit   = 3 * time.Minute // for Argo CD to remove what its Applications own
	namespaceLimit = 3 * time.Minute // for all namespaces together
	volumeLimit    = 90 * time.Second
	afterStrip     = 30 * time.Second
)

// remover takes a platform away. It collects what it did.
type remover struct {
	client     *kube.Client
	env        *step.Env
	deployment string
	owned      []string // the deployment's namespaces
	out        contract.Removed
}

// platformRemove deletes the Applications, the namespaces that Slipway made,
// their volumes and Slipway's objects of the cluster's own scope, and waits until
// they are gone. It works on a platform that is complete, half installed or
// removed already.
func platformRemove(ctx context.Context, env *step.Env, _ contract.Nothing) (contract.Removed, error) {
	c, why, err := reach(ctx, env, reachLimit, false)
	if err != nil || c == nil {
		return contract.Removed{Unreachable: why}, err
	}
	r := &remover{client: c, env: env, deployment: env.Deployment}
	for _, part := range []func(context.Context) error{
		r.findLeftovers,
		func(ctx context.Context) error { return r.applications(ctx, cascadeLimit) },
		r.namespaces, r.volumes, r.clusterScope,
	} {
		if err := part(ctx); err != nil {
			return r.out, checkFault(CodeRemove, "remove the platform", "run again: slipway destroy", err)
		}
	}
	env.Progress("removed %d applications, %d namespaces, %d volumes, %d objects of the cluster's own scope",
		len(r.out.Applications), len(r.out.Namespaces), len(r.out.Volumes), len(r.out.Cluster))
	return r.out, nil
}

// reach connects to the cluster, which gets limit to answer. Without an access
// file, or with skip and an API that does not answer, there is no client, and why
// says so.
func reach(ctx context.Context, env *step.Env, limit time.Duration, skip bool) (c *kube.Client, why string, err error) {
	if _, err := os.Stat(env.Kubeconfig); errors.Is(err, fs.ErrNotExist) {
		env.Progress("there was no cluster yet")
		return nil, "there was no cluster yet: it has no access file", nil
	}
	c, err = kube.Connect(env.Kubeconfig, env.Progress)
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err = c.WaitSuccess(limited, "the API at "+c.Endpoint(), func(ctx context.Context) error {
			return c.Kubernetes.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		})
	}
	if err == nil {
		return c, "", sameCluster(ctx, env, c)
	}
	if skip && ctx.Err() == nil {
		env.Logger.Warn("the cluster does not answer", "error", err)
		return nil, err.Error(), nil
	}
	return nil, "", checkFault(CodeAPI, "reach the cluster", "start the cluster, then run again: slipway destroy", err)
}

// findLeftovers finds the deployment's namespaces and the volumes in use there.
func (r *remover) findLeftovers(ctx context.Context) error {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	list, err := r.client.List(ctx, gvr, "", kube.ManagedBy+"="+kube.FieldManager+","+r.selector())
	if err != nil {
		return err
	}
	for _, ns := range list {
		r.owned = append(r.owned, ns.GetName())
	}
	slices.Sort(r.owned)
	volumes, err := r.orphans(ctx)
	for _, pv := range volumes {
		r.out.Volumes = append(r.out.Volumes, pv.Name)
	}
	return err
}

// selector selects what Slipway made for the deployment.
func (r *remover) selector() string { return kube.DeploymentLabel + "=" + r.deployment }

// namespaces deletes the deployment's namespaces, all at a time.
func (r *remover) namespaces(ctx context.Context) error {
	if len(r.owned) == 0 {
		return nil
	}
	r.out.Namespaces = r.owned
	r.env.Progress("deleting namespaces %s", strings.Join(r.out.Namespaces, ", "))
	stuck := r.deleteNamespaces(ctx, r.out.Namespaces, namespaceLimit)
	if len(stuck) == 0 || ctx.Err() != nil {
		return errors.Join(stuck...)
	}
	for _, err := range stuck {
		r.env.Logger.Warn("a namespace does not go by itself", "error", err)
	}
	for _, name := range r.out.Namespaces {
		left, err := r.client.StuckIn(ctx, name)
		if err != nil {
			return err
		}
		if err := r.strip(ctx, left); err != nil {
			return err
		}
	}
	return errors.Join(r.deleteNamespaces(ctx, r.out.Namespaces, afterStrip)...)
}

func (r *remover) deleteNamespaces(ctx context.Context, names []string, limit time.Duration) []error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { errs[i] = r.client.DeleteNamespace(ctx, name) })
	}
	wg.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// volumes waits until the volumes of namespaces that are gone are gone too, and
// deletes those that nobody removes.
func (r *remover) volumes(ctx context.Context) error {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	first, err := r.orphans(ctx)
	if err != nil {
		return err
	}
	for _, pv := range first {
		if !slices.Contains(r.out.Volumes, pv.Name) {
			r.out.Volumes = append(r.out.Volumes, pv.Name)
		}
		if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			if err := r.client.Delete(ctx, gvr, "", pv.Name, metav1.DeletePropagationBackground); err != nil {
				return err
			}
		}
	}
	if len(first) == 0 {
		return nil
	}
	r.env.Progress("waiting for %d volumes to be removed", len(first))
	wait := func(limit time.Duration) error {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return r.client.WaitFor(limited, "the volumes to be removed", kube.Poll, func(ctx context.Context) (bool, string, error) {
			left, err := r.orphans(ctx)
			var names []string
			for _, pv := range left {
				names = append(names, strings.TrimSpace(fmt.Sprintf("%s %s %s", pv.Name, pv.Status.Phase, pv.Status.Message)))
			}
			return len(left) == 0, strings.Join(names, ", "), err
		})
	}
	err = wait(volumeLimit)
	if err == nil || ctx.Err() != nil {
		return err
	}
	r.env.Logger.Warn("volumes do not go by themselves", "error", err)
	left, err := r.orphans(ctx)
	if err != nil {
		return err
	}
	for _, pv := range left {
		if err := r.client.Delete(ctx, gvr, "", pv.Name, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	objs, err := r.client.List(ctx, gvr, "", "")
	if err != nil {
		return err
	}
	mine := slices.DeleteFunc(kube.StuckObjects(gvr, objs), func(s kube.Stuck) bool {
		return !slices.ContainsFunc(left, func(pv corev1.PersistentVolume) bool { return pv.Name == s.Name })
	})
	if err := r.strip(ctx, mine); err != nil {
		return err
	}
	return wait(afterStrip)
}

// orphans are the volumes whose claim's namespace is the deployment's or not there.
func (r *remover) orphans(ctx context.Context) ([]corev1.PersistentVolume, error) {
	var volumes *corev1.PersistentVolumeList
	var namespaces *corev1.NamespaceList
	err := r.client.Retry(ctx, "list the volumes", func(ctx context.Context) (err error) {
		if volumes, err = r.client.Kubernetes.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
		namespaces, err = r.client.Kubernetes.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	alive := map[string]bool{}
	for _, ns := range namespaces.Items {
		alive[ns.Name] = !slices.Contains(r.owned, ns.Name)
	}
	return slices.DeleteFunc(volumes.Items, func(pv corev1.PersistentVolume) bool {
		return pv.Spec.ClaimRef == nil || alive[pv.Spec.ClaimRef.Namespace]
	}), nil
}

// clusterScope deletes what Slipway made outside of namespaces.
func (r *remover) clusterScope(ctx context.Context) error {
	resources, err := r.client.Listable(ctx)
	if err != nil {
		return err
	}
	for _, gvr := range resources {
		if gvr.Resource == "namespaces" || gvr.Resource == "persistentvolumes" {
			continue
		}
		objs, err := r.client.List(ctx, gvr, "", r.selector())
		if err != nil {
			return err
		}
		if len(objs) == 0 {
			continue
		}
		for _, o := range objs {
			r.out.Cluster = append(r.out.Cluster, o.GetKind()+"/"+o.GetName())
		}
		if err := r.delete(ctx, gvr, objs); err != nil {
			return err
		}
		left := func(ctx context.Context) ([]unstructured.Unstructured, error) {
			return r.client.List(ctx, gvr, "", r.selector())
		}
		if err := r.gone(ctx, gvr, left); err != nil {
			return err
		}
	}
	return nil
}

// delete asks for the deletion of objects.
func (r *remover) delete(ctx context.Context, gvr schema.GroupVersionResource, objs []unstructured.Unstructured) error {
	for _, o := range objs {
		if err := r.client.Delete(ctx, gvr, o.GetNamespace(), o.GetName(), metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return nil
}

// lister returns the objects of a kind that there are.
type lister func(ctx context.Context) ([]unstructured.Unstructured, error)

// gone waits for deleted objects, and strips the finalizers of those that stay.
// list returns those that are left.
func (r *remover) gone(ctx context.Context, gvr schema.GroupVersionResource, list lister) error {
	wait := func() error {
		limited, cancel := context.WithTimeout(ctx, afterStrip)
		defer cancel()
		return r.client.WaitFor(limited, gvr.Resource+" to be gone", kube.Poll, func(ctx context.Context) (bool, string, error) {
			left, err := list(ctx)
			return err == nil && len(left) == 0, kube.Left(left), err
		})
	}
	err := wait()
	if err == nil || ctx.Err() != nil {
		return err
	}
	left, listErr := list(ctx)
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	if err := r.strip(ctx, kube.StuckObjects(gvr, left)); err != nil {
		return err
	}
	return wait()
}

// strip removes finalizers that nobody answers for any more, and keeps their
// names.
func (r *remover) strip(ctx context.Context, stuck []kube.Stuck) error {
	for _, s := range stuck {
		r.env.Progress("removing the finalizers of %s", s)
		if err := r.client.Strip(ctx, s); err != nil {
			return err
		}
		r.out.Stripped = append(r.out.Stripped, s.String())
	}
	return nil
}
