package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is a group of objects that is applied as a whole: what an earlier version of it
// had and a later one has not is deleted.
type Set struct {
	Name       string // of the ConfigMap in SystemNamespace that lists the members
	Deployment string // whose objects they are
}

const membersKey = "objects"

// ApplySet applies objs as Apply does and then deletes what it applied earlier for the
// same set and objs no longer has. An object that is not labelled as the deployment's
// any more is left alone, and so is one whose deletion takes data with it:
// a CustomResourceDefinition, a Namespace, a PersistentVolumeClaim. It returns what
// was deleted.
func (c *Client) ApplySet(ctx context.Context, s Set, objs []*unstructured.Unstructured, opts ApplyOptions) (applied []Applied, deleted []string, err error) {
	before, err := c.members(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	var now, dropped []member
	for _, o := range objs {
		now = append(now, member{o.GroupVersionKind(), cmp.Or(o.GetNamespace(), opts.Namespace), o.GetName()})
	}
	for _, m := range before {
		if !slices.ContainsFunc(now, m.same) {
			dropped = append(dropped, m)
		}
	}
	// A run that is killed on the way must not forget what is there.
	if err := c.remember(ctx, s, append(slices.Clone(now), dropped...)); err != nil {
		return nil, nil, err
	}
	if applied, err = c.Apply(ctx, objs, opts); err != nil || len(dropped) == 0 {
		return applied, nil, err
	}
	for _, m := range dropped {
		gone, err := c.drop(ctx, m, s.Deployment)
		if err != nil {
			return applied, deleted, err
		}
		if gone {
			deleted = append(deleted, m.kind.Kind+" "+join(m.namespace, m.name))
		}
	}
	return applied, deleted, c.remember(ctx, s, now)
}

// member is an object of a set.
type member struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

// same tells whether two members are one object, in whatever version of its kind.
func (m member) same(o member) bool {
	return m.kind.GroupKind() == o.kind.GroupKind() && m.namespace == o.namespace && m.name == o.name
}

// members reads the list that remember wrote: "apps/v1 Deployment namespace/name" in
// each line.
func (c *Client) members(ctx context.Context, s Set) ([]member, error) {
	var lines string
	err := c.Retry(ctx, "read the list of "+s.Name, func(ctx context.Context) error {
		o, err := c.Kubernetes.CoreV1().ConfigMaps(SystemNamespace).Get(ctx, s.Name, metav1.GetOptions{})
		if err == nil {
			lines = o.Data[membersKey]
		}
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	var out []member
	for line := range strings.Lines(lines) {
		part := strings.Fields(line)
		if len(part) != 3 {
			return nil, fmt.Errorf("read the list of %s: %q is no object", s.Name, strings.TrimSpace(line))
		}
		namespace, name, found := strings.Cut(part[2], "/")
		if !found {
			namespace, name = "", part[2]
		}
		out = append(out, member{schema.FromAPIVersionAndKind(part[0], part[1]), namespace, name})
	}
	return out, nil
}

func (c *Client) remember(ctx context.Context, s Set, members []member) error {
	lines := make([]string, len(members))
	for i, m := range members {
		lines[i] = m.kind.GroupVersion().String() + " " + m.kind.Kind + " " + join(m.namespace, m.name) + "\n"
	}
	slices.Sort(lines)
	list := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": s.Name, "namespace": SystemNamespace},
		"data":     map[string]any{membersKey: strings.Join(lines, "")},
	}}
	list.SetLabels(Labels(s.Deployment))
	_, err := c.Apply(ctx, []*unstructured.Unstructured{list}, ApplyOptions{Force: true})
	return err
}

// drop deletes an object that is still the deployment's; without it, or without its
// kind, there is nothing to do.
func (c *Client) drop(ctx context.Context, m member, deployment string) (gone bool, err error) {
	switch m.kind.Kind {
	case "CustomResourceDefinition", "Namespace", "PersistentVolumeClaim":
		return false, nil
	}
	api, err := c.Resource(ctx, m.kind, m.namespace)
	if meta.IsNoMatchError(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	what := "delete " + m.kind.Kind + " " + join(m.namespace, m.name)
	err = c.Retry(ctx, what, func(ctx context.Context) error {
		live, err := api.Get(ctx, m.name, metav1.GetOptions{})
		if err != nil || DeploymentOf(live.GetLabels()) != deployment {
			return err
		}
		uid, propagation := live.GetUID(), metav1.DeletePropagationBackground
		err = api.Delete(ctx, m.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &propagation})
		gone = err == nil
		return err
	})
	return gone, ifThere(err)
}
