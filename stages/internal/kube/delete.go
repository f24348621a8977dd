package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
		return nil, IgnoreNotFound(err)
	}
	return list.Items, nil
}

// Workloads are the StatefulSets and Deployments of a namespace ("" means all) that a label
// selector selects.
func (c *Client) Workloads(ctx context.Context, namespace, selector string) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	for _, resource := range []string{"statefulsets", "deployments"} {
		found, err := c.List(ctx, appsv1.SchemeGroupVersion.WithResource(resource), namespace, selector)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// Delete asks for the deletion of an object. It is no error if the object does not exist.
func (c *Client) Delete(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, policy metav1.DeletionPropagation) error {
	return IgnoreNotFound(c.Retry(ctx, fmt.Sprintf("delete %s %s", gvr.Resource, join(namespace, name)), func(ctx context.Context) error {
		return c.target(gvr, namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy})
	}))
}

// Patch merges a patch into an object. It is no error if the object does not exist; what says in an
// error what was attempted.
func (c *Client) Patch(ctx context.Context, what string, gvr schema.GroupVersionResource, namespace, name string, patch []byte) error {
	return IgnoreNotFound(c.Retry(ctx, what, func(ctx context.Context) error {
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
	return names, c.WaitFor(ctx, gvr.Resource+" to be gone", Poll, func(ctx context.Context) (bool, string, error) {
		list, err := c.Dynamic.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return apierrors.IsNotFound(err), "", IgnoreNotFound(err)
		}
		return len(list.Items) == 0, Left(list.Items), nil
	})
}

// DeleteObject asks for the deletion of an object as it was read. It is no error if the object does
// not exist, or another object has its name by now.
func (c *Client) DeleteObject(ctx context.Context, o *unstructured.Unstructured, policy metav1.DeletionPropagation) error {
	api, err := c.Resource(ctx, o.GroupVersionKind(), o.GetNamespace())
	if meta.IsNoMatchError(err) {
		return nil
	} else if err != nil {
		return err
	}
	opts := metav1.DeleteOptions{PropagationPolicy: &policy}
	if o.GetUID() != "" {
		opts.Preconditions = metav1.NewUIDPreconditions(string(o.GetUID()))
	}
	err = c.Retry(ctx, "delete "+describe(o), func(ctx context.Context) error { return api.Delete(ctx, o.GetName(), opts) })
	if apierrors.IsConflict(err) {
		return nil
	}
	return IgnoreNotFound(err)
}

// PatchObject is Patch for an object as it was read.
func (c *Client) PatchObject(ctx context.Context, what string, o *unstructured.Unstructured, patch map[string]any) error {
	api, err := c.Resource(ctx, o.GroupVersionKind(), o.GetNamespace())
	if err != nil {
		return err
	}
	return IgnoreNotFound(c.Retry(ctx, what, func(ctx context.Context) error {
		_, err := patched(ctx, api, o.GetName(), patch)
		return err
	}))
}

// Label sets labels of an object; nil removes one.
func (c *Client) Label(ctx context.Context, o *unstructured.Unstructured, labels map[string]any) error {
	return c.PatchObject(ctx, "label "+describe(o), o, map[string]any{"metadata": map[string]any{"labels": labels}})
}

// Everything lists the objects of every resource that can be listed and deleted: of those that
// have namespaces, in one ("" means all), or of those of the cluster's own scope; narrowed by a
// label selector ("" means all). away names the groups of the API whose own servers do not answer:
// what there is of their kinds, nobody knows.
func (c *Client) Everything(ctx context.Context, namespaced bool, namespace, selector string) (objs []unstructured.Unstructured, away []string, err error) {
	lists, err := Retry(ctx, c, "list the API's resources", func(context.Context) ([]*metav1.APIResourceList, error) {
		lists, err := c.Kubernetes.Discovery().ServerPreferredResources()
		away = nil
		if failed, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); ok && len(lists) > 0 {
			for gv := range failed.Groups {
				away = append(away, gv.String())
			}
			return lists, nil
		}
		return lists, err
	})
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(away)
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range l.APIResources {
			if r.Namespaced != namespaced || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") {
				continue
			}
			found, err := c.List(ctx, gv.WithResource(r.Name), namespace, selector)
			if err != nil && !apierrors.IsMethodNotSupported(err) {
				return nil, nil, err
			}
			objs = append(objs, found...)
		}
	}
	return objs, away, nil
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
		if o.GetKind() == "Namespace" {
			name += whyKept(o)
		}
		names = append(names, name)
	}
	return fmt.Sprintf("%d left: %s", len(objs), strings.Join(names, ", "))
}

// whyKept is what a namespace that is being deleted says of what is left in it.
func whyKept(ns unstructured.Unstructured) string {
	var why []string
	for _, c := range Entries(&ns, "status", "conditions") {
		if c["status"] == "True" {
			why = append(why, fmt.Sprint(c["message"]))
		}
	}
	if len(why) == 0 {
		return ""
	}
	return " (" + strings.Join(why, "; ") + ")"
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
