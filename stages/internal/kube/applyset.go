package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is a group of objects that is applied as a whole: what an earlier version of it
// had and a later one has not is deleted.
type Set struct {
	Name       string   // of the note that lists the members
	Deployment string   // whose objects they are
	Also       []Member // members that the caller makes itself

	// Others, which may be nil, lists what has another owner by now, and stays. It is asked only
	// before something is deleted, and after objs are applied.
	Others func(ctx context.Context) ([]Member, error)
}

// inventoryKey is the key of a Set's list, which has the form of Flux's ResourceInventory: other
// tools can read it.
const inventoryKey = "inventory"

type inventory struct {
	Entries []entry `json:"entries"`
}

type entry struct {
	ID      string `json:"id"` // namespace_name_group_kind; a colon of a name is __
	Version string `json:"v"`
}

func entryOf(m Member) entry {
	return entry{strings.Join([]string{m.Namespace, strings.ReplaceAll(m.Name, ":", "__"), m.Kind.Group, m.Kind.Kind}, "_"), m.Kind.Version}
}

// member is the object of an entry. Only its name may have further underscores.
func (e entry) member() (m Member, ok bool) {
	part := strings.Split(e.ID, "_")
	n := len(part)
	if n < 4 {
		return m, false
	}
	m.Kind = schema.GroupVersionKind{Group: part[n-2], Version: e.Version, Kind: part[n-1]}
	m.Namespace, m.Name = part[0], strings.ReplaceAll(strings.Join(part[1:n-2], "_"), "__", ":")
	return m, m.Name != "" && m.Kind.Kind != ""
}

// ApplySet applies objs as Apply does and then deletes what it applied earlier for the
// same set and objs no longer has. An object that is not labelled as the deployment's
// any more is left alone, and so is one whose deletion takes data with it:
// see HasData. One of a chart's hook stays in the set: Helm keeps what a hook made, such as a password
// that only the first install renders. It returns what was deleted.
func (c *Client) ApplySet(ctx context.Context, s Set, objs []*unstructured.Unstructured, opts ApplyOptions) (applied []Applied, deleted []string, err error) {
	before, err := c.Members(ctx, s.Name)
	if err != nil {
		return nil, nil, err
	}
	now, err := c.MembersOf(ctx, objs, opts.Namespace)
	if err != nil {
		return nil, nil, err
	}
	now = append(now, s.Also...)
	stays := func(m Member) bool { return slices.ContainsFunc(now, m.Same) }
	dropped := slices.DeleteFunc(before, stays)
	// A run that is killed on the way must not forget what is there.
	if err := c.KeepMembers(ctx, s.Deployment, s.Name, append(slices.Clone(now), dropped...)); err != nil {
		return nil, nil, err
	}
	if applied, err = c.Apply(ctx, objs, opts); err != nil || len(dropped) == 0 {
		return applied, nil, err
	}
	if dropped, err = c.scoped(ctx, dropped); err != nil { // of a kind that is there only now
		return applied, nil, err
	}
	dropped = slices.DeleteFunc(dropped, stays)
	var others []Member
	if s.Others != nil {
		if others, err = s.Others(ctx); err != nil {
			return applied, nil, err
		}
	}
	for _, m := range dropped {
		if slices.ContainsFunc(others, m.Same) {
			continue
		}
		hook, err := c.ofHook(ctx, m, s.Deployment)
		if err != nil {
			return applied, deleted, err
		}
		if hook {
			now = append(now, m)
			continue
		}
		gone, err := c.DeleteOurs(ctx, m, s.Deployment, metav1.DeletePropagationBackground)
		if err != nil {
			return applied, deleted, err
		}
		if gone {
			deleted = append(deleted, m.String())
		}
	}
	return applied, deleted, c.KeepMembers(ctx, s.Deployment, s.Name, now)
}

// ofHook reports whether a hook of the deployment's chart has made an object that is there.
func (c *Client) ofHook(ctx context.Context, m Member, deployment string) (bool, error) {
	live, err := c.Live(ctx, m)
	return live != nil && DeploymentOf(live.GetLabels()) == deployment && IsHook(live), err
}

// Member is an object of a set.
type Member struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string // Namespace is empty for an object of the cluster's own scope
}

// MemberOf is the member that an object is.
func MemberOf(o *unstructured.Unstructured) Member {
	return Member{o.GroupVersionKind(), o.GetNamespace(), o.GetName()}
}

// String is "Deployment argocd/repo-server".
func (m Member) String() string { return m.Kind.Kind + " " + join(m.Namespace, m.Name) }

// HasData reports whether data goes with the object: the deletion of a
// CustomResourceDefinition, a Namespace, a PersistentVolumeClaim or a PersistentVolume
// takes it along.
func (m Member) HasData() bool {
	return slices.Contains([]string{"CustomResourceDefinition", "Namespace", "PersistentVolumeClaim", "PersistentVolume"}, m.Kind.Kind)
}

// Same tells whether two members are one object, in whatever version of its kind.
func (m Member) Same(o Member) bool {
	return m.Kind.GroupKind() == o.Kind.GroupKind() && m.Namespace == o.Namespace && m.Name == o.Name
}

// Members lists the objects of the set of that name, as ApplySet noted them; none if there
// is no such set.
func (c *Client) Members(ctx context.Context, name string) ([]Member, error) {
	var list inventory
	if found, err := c.Note(ctx, "", name, inventoryKey, &list); err != nil || !found {
		return nil, err
	}
	var out []Member
	for _, e := range list.Entries {
		m, ok := e.member()
		if !ok {
			return nil, fmt.Errorf("read the list of %s: %q is no object", name, e.ID)
		}
		out = append(out, m)
	}
	return c.scoped(ctx, out)
}

// KeepMembers makes members the list of that name, which is a deployment's. For a plan it
// fails if that would change anything.
func (c *Client) KeepMembers(ctx context.Context, deployment, name string, members []Member) error {
	list := inventory{Entries: make([]entry, len(members))}
	for i, m := range members {
		list.Entries[i] = entryOf(m)
	}
	slices.SortFunc(list.Entries, func(a, b entry) int { return strings.Compare(a.ID, b.ID) })
	return c.KeepNote(ctx, deployment, name, inventoryKey, list)
}

// DeleteOurs asks for the deletion of an object that is still labelled as the deployment's: a list
// alone deletes nothing. It is no error if the object, or its kind, does not exist. Objects stay if
// data goes with them, if Keeps says so, or if Argo CD has brought them since. Claims that a
// StatefulSet leaves get the deployment's label.
func (c *Client) DeleteOurs(ctx context.Context, m Member, deployment string, policy metav1.DeletionPropagation) (asked bool, err error) {
	if m.HasData() {
		return false, nil
	}
	live, err := c.Live(ctx, m)
	if err != nil || live == nil || DeploymentOf(live.GetLabels()) != deployment || Keeps(live) || Brought(live) {
		return false, err
	}
	if err := c.MarkClaims(ctx, live, deployment); err != nil {
		return false, err
	}
	return true, c.DeleteObject(ctx, live, policy)
}

// Live is an object as it is now; nil if it, or its kind, is not there.
func (c *Client) Live(ctx context.Context, m Member) (*unstructured.Unstructured, error) {
	api, err := c.Resource(ctx, m.Kind, m.Namespace)
	if meta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	o, err := Retry(ctx, c, "get "+m.String(), func(ctx context.Context) (*unstructured.Unstructured, error) {
		return api.Get(ctx, m.Name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, IgnoreNotFound(err)
	}
	return o, nil
}

// ObjectsOf is the name of the Set of what a component has in the cluster.
func ObjectsOf(component string) string { return component + "-objects" }

// ChartOf is the name of the note of what the chart of a component rendered to.
func ChartOf(component string) string { return component + "-chart" }

// JobsOf is the name of the note of the Jobs of a component that have completed: by JobKey, the
// digest of what each did.
func JobsOf(component string) string { return component + "-jobs" }

// JobKey is a Job's key there.
func JobKey(job metav1.Object) string { return job.GetNamespace() + "." + job.GetName() }

// Forget deletes what is noted of a component that is gone, or somebody else's by now. The list of
// its objects goes last: as long as it is there, a run that was killed is gone on with.
func (c *Client) Forget(ctx context.Context, deployment, component string) error {
	for _, name := range []string{ChartOf(component), JobsOf(component), ObjectsOf(component)} {
		m := Member{corev1.SchemeGroupVersion.WithKind("Secret"), SystemNamespace, name}
		if _, err := c.DeleteOurs(ctx, m, deployment, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return nil
}

// MarkClaims gives the claims that an object of a deployment has made, if it is a StatefulSet, the
// deployment's label: they outlast it, and have none of their own by which a destroy would find them.
func (c *Client) MarkClaims(ctx context.Context, o *unstructured.Unstructured, deployment string) error {
	if !MemberOf(o).MakesClaims() {
		return nil
	}
	var set appsv1.StatefulSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &set); err != nil {
		return fmt.Errorf("read %s: %w", describe(o), err)
	}
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	gvr := corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	claims, err := c.List(ctx, gvr, o.GetNamespace(), "")
	if err != nil {
		return err
	}
	for i := range claims {
		claim := &claims[i]
		if !madeFor(&set, claim.GetName()) || DeploymentOf(claim.GetLabels()) == deployment && WroteTo(claim) {
			continue
		}
		if err := c.Label(ctx, claim, map[string]any{DeploymentLabel: deployment}); err != nil {
			return err
		}
	}
	return nil
}

// madeFor reports whether a StatefulSet gives its claims such a name: template-set-0.
func madeFor(set *appsv1.StatefulSet, claim string) bool {
	return slices.ContainsFunc(set.Spec.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool {
		number, ok := strings.CutPrefix(claim, t.Name+"-"+set.Name+"-")
		return ok && number != "" && strings.Trim(number, "0123456789") == ""
	})
}

// MakesClaims reports whether an object makes claims that outlast it.
func (m Member) MakesClaims() bool {
	return m.Kind.Group == appsv1.GroupName && m.Kind.Kind == "StatefulSet"
}
