package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// ApplyOptions tell how objects are applied: fields are taken over from other managers.
type ApplyOptions struct {
	// Namespace is for namespaced objects that name none. "" means "default".
	Namespace string
	// Added returns the merge patch that removes from live, to which obj was applied, what others
	// must not add to it. Nil: they may add anything.
	Added func(live, obj *unstructured.Unstructured) (patch map[string]any)
}

// added is Added of an object that is there.
func (o ApplyOptions) added(live, obj *unstructured.Unstructured) map[string]any {
	if o.Added == nil || live == nil {
		return nil
	}
	return o.Added(live, obj)
}

// Change is what applying did to one object.
type Change string

// The changes.
const (
	Created   Change = "created"
	Changed   Change = "changed"
	Unchanged Change = "unchanged"
)

// Applied tells what happened to one object.
type Applied struct {
	Kind, Namespace, Name string
	Change                Change
}

// parallel is how many objects of one rank are applied at a time.
const parallel = 8

// Apply applies objects by server-side apply as FieldManager: Namespaces first,
// then CustomResourceDefinitions, which it waits for, then the rest from what
// others refer to up to what runs. An object that is as it should be is not
// written, so its generation stays. What somebody has added with kubectl is removed. The result is in
// the order of objs. It stops at the first rank with an error and reports all errors of that rank;
// a plan reports those of what comes after namespaces and definitions, too.
func (c *Client) Apply(ctx context.Context, objs []*unstructured.Unstructured, opts ApplyOptions) ([]Applied, error) {
	out, ranks := make([]Applied, len(objs)), byRank(objs)
	var errs []error
	for r := rankNamespace; r <= rankLast; r++ {
		if err := c.applyRank(ctx, objs, ranks[r], opts, out); err != nil {
			errs = append(errs, err)
			if c.Plan == nil || r <= rankDefinition {
				break
			}
		}
		if r == rankDefinition && len(ranks[r]) > 0 && c.Plan == nil {
			if err := c.established(ctx, objs, ranks[r]); err != nil {
				return out, err
			}
		}
	}
	return out, errors.Join(errs...)
}

func (c *Client) applyRank(ctx context.Context, objs []*unstructured.Unstructured, which []int, opts ApplyOptions, out []Applied) error {
	errs := make([]error, len(which))
	var group errgroup.Group
	group.SetLimit(parallel)
	for n, i := range which {
		group.Go(func() error {
			out[i], errs[n] = c.applyOne(ctx, objs[i], opts)
			return nil
		})
	}
	return errors.Join(append(errs, group.Wait())...)
}

func (c *Client) applyOne(ctx context.Context, obj *unstructured.Unstructured, opts ApplyOptions) (Applied, error) {
	ns := cmp.Or(obj.GetNamespace(), opts.Namespace, metav1.NamespaceDefault)
	a := Applied{Kind: obj.GetKind(), Namespace: ns, Name: obj.GetName(), Change: Created}
	target, namespaced, err := c.resource(ctx, obj.GroupVersionKind(), ns)
	if meta.IsNoMatchError(err) && c.unserved(obj, ns) {
		return a, nil
	}
	if err != nil {
		return Applied{}, rejected("apply "+describe(obj), nil, err)
	}
	if obj = plainSecret(obj); namespaced {
		obj = obj.DeepCopy()
		obj.SetNamespace(ns)
	} else {
		a.Namespace = ""
	}
	what := "apply " + describe(obj)
	before, err := Retry(ctx, c, what, func(ctx context.Context) (*unstructured.Unstructured, error) {
		o, err := target.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return o, err
	})
	if err != nil {
		return Applied{}, err
	}
	leaving := before != nil && before.GetDeletionTimestamp() != nil
	if leaving && c.Plan.Verifies() {
		c.Plan.Change("%s, which is being deleted", what)
		return a, nil
	}
	if leaving && c.Plan == nil {
		if err := c.awaitDeleted(ctx, target, before); err != nil {
			return Applied{}, err
		}
		before = nil
	}
	if !c.Plan.Previews() && before != nil && isApplied(before, obj) && opts.added(before, obj) == nil {
		a.Change = Unchanged
		return a, nil
	}
	if hands := byHand(before); len(hands) > 0 && c.Plan == nil {
		err := c.Retry(ctx, what, func(ctx context.Context) error { return takeOver(ctx, target, obj.GetName(), hands...) })
		if err != nil {
			return Applied{}, rejected(what, before, err)
		}
	}
	how := metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
	if c.Plan != nil {
		how.DryRun = []string{metav1.DryRunAll} // a replacement ends with its first request
	}
	after, err := Retry(ctx, c, what, func(ctx context.Context) (*unstructured.Unstructured, error) {
		after, err := target.Apply(ctx, obj.GetName(), obj, how)
		if free, failed := c.freed(ctx, obj, err); failed != nil {
			return nil, failed
		} else if free {
			return target.Apply(ctx, obj.GetName(), obj, how)
		}
		if replaceable(before, err) {
			if whole, refused := replace(ctx, target, obj, how); refused == nil || Transient(refused) || untyped(err) && !untyped(refused) {
				return whole, refused
			}
		}
		return after, err
	})
	added := opts.added(after, obj)
	if err == nil && c.Plan == nil && added != nil {
		after, err = Retry(ctx, c, what, func(ctx context.Context) (*unstructured.Unstructured, error) {
			return patched(ctx, target, obj.GetName(), added)
		})
	}
	if err != nil {
		return Applied{}, rejected(what, before, err)
	}
	if before != nil && c.Plan != nil { // a controller may have written to it since
		if o, known := c.Plan.Found(after.Object); known {
			before = &unstructured.Unstructured{Object: o.Before}
		}
	}
	switch {
	case before == nil:
	case c.Plan != nil && plan.Same(before.Object, after.Object) && len(byHand(after)) == 0 && added == nil, c.Plan == nil && before.GetResourceVersion() == after.GetResourceVersion():
		a.Change = Unchanged
	default:
		a.Change = Changed
	}
	if len(byHand(after)) > 0 || added != nil {
		c.planTaken(before, after, added)
	}
	if a.Change != Unchanged {
		c.Plan.Change("%s", what)
	}
	return a, nil
}

// The ranks of Apply.
const (
	rankNamespace = iota
	rankDefinition
	rankReferred
	rankService
	rankWorkload
	rankLast
)

// byRank are the places of objects in objs.
func byRank(objs []*unstructured.Unstructured) map[int][]int {
	out := map[int][]int{}
	for i, o := range objs {
		out[rank(o)] = append(out[rank(o)], i)
	}
	return out
}

func rank(o *unstructured.Unstructured) int {
	switch o.GetKind() {
	case "Namespace":
		return rankNamespace
	case "CustomResourceDefinition":
		return rankDefinition
	case "ServiceAccount", "Secret", "ConfigMap", "StorageClass", "PriorityClass", "LimitRange", "ResourceQuota",
		"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "PersistentVolume", "NetworkPolicy":
		return rankReferred
	case "Service", "PersistentVolumeClaim":
		return rankService
	case "Pod", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet":
		return rankWorkload
	default:
		return rankLast
	}
}

// Entries are the objects of a list in an object.
func Entries(o *unstructured.Unstructured, fields ...string) []map[string]any {
	all, _, _ := unstructured.NestedSlice(o.Object, fields...)
	var out []map[string]any
	for _, v := range all {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// describe is "Deployment argocd/repo-server".
func describe(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + join(o.GetNamespace(), o.GetName())
}

// Count sums applied up: "5 objects: 1 created, 2 changed".
func Count(applied []Applied) string {
	n := map[Change]int{}
	for _, a := range applied {
		n[a.Change]++
	}
	return fmt.Sprintf("%d objects: %d created, %d changed, %d unchanged", len(applied), n[Created], n[Changed], n[Unchanged])
}

// Altered is how many of applied were created or changed.
func Altered(applied []Applied) int {
	n := 0
	for _, a := range applied {
		if a.Change != Unchanged {
			n++
		}
	}
	return n
}

func (c *Client) established(ctx context.Context, objs []*unstructured.Unstructured, which []int) error {
	gvk := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	crds, err := c.Resource(ctx, gvk, "")
	if err != nil {
		return err
	}
	for _, i := range which {
		name, accepted, nudged := objs[i].GetName(), time.Time{}, false
		err := c.WaitFor(ctx, "definition "+name+" to be served", Poll, func(ctx context.Context) (bool, string, error) {
			o, err := crds.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, "", err
			}
			is := func(kind string) bool {
				return slices.ContainsFunc(Entries(o, "status", "conditions"), func(c map[string]any) bool { return c["type"] == kind && c["status"] == "True" })
			}
			switch {
			case is("Established"):
				return true, "", nil
			case nudged || !is("NamesAccepted"):
			case accepted.IsZero():
				accepted = time.Now()
			case time.Since(accepted) >= overdue:
				err = nudge(ctx, crds, name)
				nudged = err == nil
			}
			return false, "not established yet", err
		})
		if err != nil {
			return err
		}
	}
	c.kinds.Lock()
	defer c.kinds.Unlock()
	c.kinds.Reset()
	return nil
}

// overdue is how long the API server may take to serve a CRD whose names it has accepted; it
// takes milliseconds.
const overdue = 2 * time.Second

// nudge changes a CRD, and changes it back. An API server that was killed between accepting
// its names and establishing it does the latter only when it sees the CRD change: by itself
// after five minutes, when its informers look at everything again (k8s.io/apiextensions-apiserver
// v0.37.2, pkg/apiserver/customresource_handler.go, updateCustomResourceDefinition).
func nudge(ctx context.Context, crds dynamic.ResourceInterface, name string) error {
	for _, value := range []any{"true", nil} {
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"slipway.sh/nudge": value}}}
		if _, err := patched(ctx, crds, name, patch); err != nil {
			return fmt.Errorf("have CRD %s established: %w", name, err)
		}
	}
	return nil
}

// leavingLimit is how long an object that is being deleted may take to be gone.
const leavingLimit = 3 * time.Minute

// awaitDeleted waits until an object that is being deleted is gone, or another one has its name.
func (c *Client) awaitDeleted(ctx context.Context, api dynamic.ResourceInterface, o *unstructured.Unstructured) error {
	c.Report("%s is being deleted: it is made again once it is gone", describe(o))
	limited, cancel := context.WithTimeout(ctx, leavingLimit)
	defer cancel()
	return c.WaitFor(limited, describe(o)+", which is being deleted, to be gone", Poll, func(ctx context.Context) (bool, string, error) {
		live, err := api.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			return IgnoreNotFound(err) == nil, "", IgnoreNotFound(err)
		}
		seen := "it is still there"
		if f := live.GetFinalizers(); len(f) > 0 {
			seen = "nobody has removed its finalizer " + strings.Join(f, ", ")
		}
		return live.GetUID() != o.GetUID(), seen, nil
	})
}

// freed releases the address of a Service that was never created, after the API server
// refused service because its address is taken, and reports whether it did. An API server
// that is killed between allocating an address and writing the Service leaves the
// allocation behind, and cleans it up only after some minutes
// (k8s.io/kubernetes v1.37.2, pkg/registry/core/service/ipallocator/controller).
func (c *Client) freed(ctx context.Context, service *unstructured.Unstructured, refusal error) (bool, error) {
	ip, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	if service.GetKind() != "Service" || ip == "" || c.Plan != nil ||
		!apierrors.IsInvalid(refusal) || !strings.Contains(refusal.Error(), "already allocated") {
		return false, nil
	}
	addresses := c.Kubernetes.NetworkingV1().IPAddresses()
	a, err := addresses.Get(ctx, ip, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil // somebody else was faster
	case err != nil:
		return false, fmt.Errorf("find the owner of address %s: %w", ip, err)
	}
	of := a.Spec.ParentRef
	if of == nil || of.Resource != "services" || of.Namespace != service.GetNamespace() || of.Name != service.GetName() {
		return false, nil // it is another Service's
	}
	_, err = c.Kubernetes.CoreV1().Services(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return false, err
	}
	err = addresses.Delete(ctx, ip, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(a.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("free the address %s of a Service that was never made: %w", ip, err)
	}
	c.Report("freed the address %s of Service %s/%s, which was never made", ip, of.Namespace, of.Name)
	return true, nil
}
