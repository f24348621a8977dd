package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// List returns the objects of a resource in namespace ("" means all), narrowed by a label
// selector ("" means all). A resource that the cluster does not know has none.
func (c *Client) List(ctx context.Context, gvr schema.GroupVersionResource, namespace, selector string) ([]unstructured.Unstructured, error) {
	list, err := Retry(ctx, c, "list "+gvr.Resource, func(ctx context.Context) (*unstructured.UnstructuredList, error) {
		return c.Dynamic.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	})
	if err != nil {
		return nil, ifThere(err)
	}
	return list.Items, nil
}

// Delete asks for the deletion of one object; one that is not there is no error.
func (c *Client) Delete(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, policy metav1.DeletionPropagation) error {
	return ifThere(c.Retry(ctx, fmt.Sprintf("delete %s %s", gvr.Resource, join(namespace, name)), func(ctx context.Context) error {
		return c.target(gvr, namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy})
	}))
}

// Patch merges a patch into one object; one that is not there is no error. what says in
// the error what was attempted.
func (c *Client) Patch(ctx context.Context, what string, gvr schema.GroupVersionResource, namespace, name string, patch []byte) error {
	return ifThere(c.Retry(ctx, what, func(ctx context.Context) error {
		_, err := c.target(gvr, namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
		return err
	}))
}

// WaitAbsent waits until look returns an error that the object does not exist; seen says
// what it saw before.
func (c *Client) WaitAbsent(ctx context.Context, what string, look func(ctx context.Context) (seen string, err error)) error {
	return c.WaitFor(ctx, what+" to be gone", Poll, func(ctx context.Context) (bool, string, error) {
		seen, err := look(ctx)
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		return false, seen, err
	})
}

// WaitGone waits until no object of a resource matches any more. What is left
// at the end is in the error, with its finalizers.
func (c *Client) WaitGone(ctx context.Context, gvr schema.GroupVersionResource, namespace, selector string) error {
	return c.WaitFor(ctx, gvr.Resource+" to be gone", Poll, func(ctx context.Context) (bool, string, error) {
		list, err := c.Dynamic.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return apierrors.IsNotFound(err), "", ifThere(err)
		}
		return len(list.Items) == 0, Left(list.Items), nil
	})
}

// DeleteAll deletes the objects of a resource that match, and waits until they
// are gone or ctx ends. It returns their names, "namespace/name".
func (c *Client) DeleteAll(ctx context.Context, gvr schema.GroupVersionResource, namespace, selector string) ([]string, error) {
	list, err := c.List(ctx, gvr, namespace, selector)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range list {
		if err := c.Delete(ctx, gvr, o.GetNamespace(), o.GetName(), metav1.DeletePropagationForeground); err != nil {
			return names, err
		}
		names = append(names, join(o.GetNamespace(), o.GetName()))
	}
	if len(names) == 0 {
		return nil, nil
	}
	return names, c.WaitGone(ctx, gvr, namespace, selector)
}

// DeleteNamespace deletes a namespace and waits until it is gone or ctx ends.
// What holds it up is in the error: the finalizers or resources that remain. One of that
// name with another UID was made since: it stays. An empty uid stands for whichever is there.
func (c *Client) DeleteNamespace(ctx context.Context, name string, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	opts := metav1.DeleteOptions{PropagationPolicy: &background}
	if uid != "" {
		opts.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := c.Retry(ctx, "delete namespace "+name, func(ctx context.Context) error {
		return c.Kubernetes.CoreV1().Namespaces().Delete(ctx, name, opts)
	})
	if err := ifThere(err); err != nil && (uid == "" || !apierrors.IsConflict(err)) {
		return err
	}
	return c.WaitAbsent(ctx, "namespace "+name, func(ctx context.Context) (string, error) {
		ns, err := c.Kubernetes.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if uid != "" && ns.UID != uid {
			return "", apierrors.NewNotFound(corev1.Resource("namespaces"), name)
		}
		var seen []string
		for _, cond := range ns.Status.Conditions {
			if cond.Status == "True" && cond.Message != "" {
				seen = append(seen, cond.Message)
			}
		}
		return cmp.Or(strings.Join(seen, "; "), "phase "+string(ns.Status.Phase)), nil
	})
}

// Stuck is an object whose deletion waits for its finalizers.
type Stuck struct {
	Resource   schema.GroupVersionResource
	Kind       string
	Namespace  string
	Name       string
	Finalizers []string
}

// String is "Application argocd/root: resources-finalizer.argocd.argoproj.io".
func (s Stuck) String() string {
	return fmt.Sprintf("%s %s: %s", s.Kind, join(s.Namespace, s.Name), strings.Join(s.Finalizers, ", "))
}

// StuckObjects are those of objs that are being deleted and have finalizers.
func StuckObjects(gvr schema.GroupVersionResource, objs []unstructured.Unstructured) []Stuck {
	var out []Stuck
	for _, o := range objs {
		if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) > 0 {
			out = append(out, Stuck{gvr, o.GetKind(), o.GetNamespace(), o.GetName(), o.GetFinalizers()})
		}
	}
	return out
}

// Stuck are those of objs, of whatever kinds, that are being deleted and have finalizers.
func (c *Client) Stuck(ctx context.Context, objs []unstructured.Unstructured) ([]Stuck, error) {
	var out []Stuck
	for _, o := range objs {
		gvk := o.GroupVersionKind()
		m, err := c.lookUp(ctx, gvk)
		if err != nil {
			return nil, err
		}
		out = append(out, StuckObjects(m.Resource, []unstructured.Unstructured{o})...)
	}
	return out, nil
}

// StuckIn finds what keeps a namespace that is being deleted.
func (c *Client) StuckIn(ctx context.Context, namespace string) ([]Stuck, error) {
	resources, err := c.Listable(ctx, true)
	if err != nil {
		return nil, err
	}
	var out []Stuck
	for _, gvr := range resources {
		objs, err := c.List(ctx, gvr, namespace, "")
		if apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			return out, err
		}
		out = append(out, StuckObjects(gvr, objs)...)
	}
	return out, nil
}

// Strip removes the finalizers of an object, so that its deletion goes through
// without what they stood for.
func (c *Client) Strip(ctx context.Context, s Stuck) error {
	return c.Patch(ctx, "remove the finalizers of "+s.String(), s.Resource, s.Namespace, s.Name, []byte(`{"metadata":{"finalizers":null}}`))
}

// Listable returns the resources that can be listed and deleted: those that have
// namespaces, or those of the cluster's own scope.
func (c *Client) Listable(ctx context.Context, namespaced bool) ([]schema.GroupVersionResource, error) {
	lists, err := Retry(ctx, c, "list the API's resources", func(context.Context) ([]*metav1.APIResourceList, error) {
		lists, err := c.Kubernetes.Discovery().ServerPreferredResources()
		if len(lists) > 0 {
			return lists, nil // a group whose own server is away has nothing to tell
		}
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	var out []schema.GroupVersionResource
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range l.APIResources {
			if r.Namespaced == namespaced && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") {
				out = append(out, gv.WithResource(r.Name))
			}
		}
	}
	return out, nil
}

// Away names the groups of the API whose own servers do not answer: what there is of their
// kinds, nobody knows.
func (c *Client) Away(ctx context.Context) ([]string, error) {
	var away []string
	err := c.Retry(ctx, "list the API's resources", func(context.Context) error {
		_, err := c.Kubernetes.Discovery().ServerPreferredResources()
		if failed, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); ok {
			away = nil
			for gv := range failed.Groups {
				away = append(away, gv.String())
			}
			return nil
		}
		return err
	})
	slices.Sort(away)
	return away, err
}

// Left names objects for people, with the finalizers of those that are being
// deleted: "3 left: a, b (finalizer x), c".
func Left(objs []unstructured.Unstructured) string {
	const most = 5
	var names []string
	for _, o := range objs {
		if len(names) == most {
			names = append(names, "…")
			break
		}
		name := join(o.GetNamespace(), o.GetName())
		if f := o.GetFinalizers(); o.GetDeletionTimestamp() != nil && len(f) > 0 {
			name += fmt.Sprintf(" (since %s for finalizer %s)", time.Since(o.GetDeletionTimestamp().Time).Round(time.Second), strings.Join(f, ", "))
		}
		names = append(names, name)
	}
	return fmt.Sprintf("%d left: %s", len(objs), strings.Join(names, ", "))
}

// target is where objects of gvr in namespace ("" for the cluster's own) are.
func (c *Client) target(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.Dynamic.Resource(gvr)
	}
	return c.Dynamic.Resource(gvr).Namespace(namespace)
}

func join(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
