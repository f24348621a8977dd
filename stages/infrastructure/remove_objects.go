package infrastructure

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
)

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func (r *remover) findNamespaces(ctx context.Context) error {
	list, err := r.Client.List(ctx, core("namespaces"), "", r.Selector())
	if err != nil {
		return err
	}
	r.found = map[string]unstructured.Unstructured{}
	for _, ns := range list {
		name := ns.GetName()
		if !r.genuine(ns) {
			continue
		}
		switch {
		case !kube.MadeNamespace(ns.GetLabels(), r.Deployment):
			r.used = append(r.used, name)
		case name == kube.SystemNamespace:
			r.system, r.found[name], r.since = true, ns, ns.GetCreationTimestamp().Time
		default:
			r.made, r.found[name] = append(r.made, name), ns
			if err := r.findKept(ctx, ns); err != nil {
				return err
			}
		}
	}
	slices.Sort(r.made)
	return r.findMarked(ctx)
}

// findMarked notes the namespaces with objects of the deployment that have a mark to stay.
func (r *remover) findMarked(ctx context.Context) error {
	if len(r.made) == 0 {
		return nil
	}
	objs, _, err := r.Client.Everything(ctx, true, "", r.Selector())
	for _, o := range objs {
		if n := o.GetNamespace(); kube.Keeps(&o) && kube.WroteTo(&o) && slices.Contains(r.made, n) && !slices.Contains(r.kept, n) {
			r.kept = append(r.kept, n)
		}
	}
	return err
}

// findKept notes a namespace whose claims stay, also because an earlier destroy kept them.
func (r *remover) findKept(ctx context.Context, ns unstructured.Unstructured) error {
	before := ns.GetLabels()[kube.Kept] != "" && !r.recorded
	if !before && r.Rules.Claims != platform.RemoveKeep {
		return nil
	}
	claims, err := r.Client.List(ctx, core("persistentvolumeclaims"), ns.GetName(), "")
	if err == nil && len(claims) > 0 {
		r.kept = append(r.kept, ns.GetName())
	}
	return err
}

// known ends the removal where claims would be deleted though nothing says any more whether
// the release keeps them. An install that was killed before it said so has none.
func (r *remover) known(ctx context.Context) error {
	if r.recorded {
		return nil
	}
	var lost []string
	for _, name := range r.made {
		if slices.Contains(r.kept, name) || name == checksNamespace(r.Deployment) {
			continue
		}
		claims, err := r.Client.List(ctx, core("persistentvolumeclaims"), name, "!"+kube.Kept)
		if err != nil {
			return err
		}
		for _, c := range claims {
			lost = append(lost, nameOf(c))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: CodeUnrecorded, Class: fault.Step, Op: "remove the platform",
		Err: fmt.Errorf("the cluster does not say any more how the platform is removed, and there are the claims %s; nothing was removed", strings.Join(lost, ", ")),
		Fix: "run slipway install, which says so again, then slipway destroy",
	}
}

// ours reports whether an object is the deployment's, by its label or by Slipway's namespace.
func (r *remover) ours(o unstructured.Unstructured) bool {
	ours := kube.DeploymentOf(o.GetLabels()) == r.Deployment && kube.WroteTo(&o)
	if isApplication(&o) {
		ours = r.platform[o.GetUID()]
	}
	return ours || slices.Contains(r.made, o.GetNamespace()) ||
		r.system && o.GetNamespace() == kube.SystemNamespace
}

// genuine reports whether an object with the deployment's label is the deployment's. A copy that somebody
// made or restored stays, and is noted unless it has an owner, with which it goes.
func (r *remover) genuine(o unstructured.Unstructured) bool {
	name := o.GetKind() + " " + nameOf(o) + " (a copy: Slipway has not written to it)"
	switch {
	case isApplication(&o):
		if r.platform[o.GetUID()] {
			return true
		}
		name = o.GetKind() + " " + nameOf(o) + " (with the deployment's label, though Slipway did not make it)"
	case kube.WroteTo(&o):
		return true
	}
	if len(o.GetOwnerReferences()) == 0 && o.GetKind() != "Endpoints" && !slices.Contains(r.out.Kept, name) {
		r.out.Kept = append(r.out.Kept, name)
	}
	return false
}

// stays reports whether an object is marked to stay, a claim that the release keeps, or a Secret beside one.
func (r *remover) stays(o unstructured.Unstructured, claims map[string]bool) bool {
	if kube.Keeps(&o) { // which somebody else's does with a namespace that goes
		return !slices.Contains(r.made, o.GetNamespace()) || slices.Contains(r.kept, o.GetNamespace())
	}
	if r.Rules.Claims != platform.RemoveKeep && (o.GetLabels()[kube.Kept] == "" || r.recorded) {
		return false
	}
	switch o.GetKind() {
	case "PersistentVolumeClaim":
		return true
	case "Secret":
		return claims[o.GetNamespace()] && kube.DeploymentOf(o.GetLabels()) == r.Deployment && o.GetName() != kube.PullSecret
	}
	return false
}

// keep notes that an object stays, in the cluster too.
func (r *remover) keep(ctx context.Context, o unstructured.Unstructured, why string) error {
	name := o.GetKind() + " " + nameOf(o)
	if !slices.Contains(r.out.Kept, name) {
		r.out.Kept = append(r.out.Kept, name)
	}
	return r.Client.Label(ctx, &o, map[string]any{kube.Kept: why, kube.DeploymentLabel: r.Deployment})
}

// namespaces deletes the namespaces that Slipway made, all at a time. Of one with claims or other
// objects that stay it deletes everything else.
func (r *remover) namespaces(ctx context.Context) error {
	names := slices.DeleteFunc(slices.Clone(r.made), func(n string) bool { return slices.Contains(r.kept, n) })
	if err := r.deleteNamespaces(ctx, names); err != nil {
		return err
	}
	r.made = slices.Clone(r.kept) // what has one of the other names now is somebody else's
	for _, name := range r.kept {
		if err := r.empty(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (r *remover) systemNamespace(ctx context.Context) error {
	if !r.system {
		return nil
	}
	return r.deleteNamespaces(ctx, []string{kube.SystemNamespace})
}

func (r *remover) deleteNamespaces(ctx context.Context, names []string) error {
	r.out.Namespaces = append(r.out.Namespaces, names...)
	slices.Sort(r.out.Namespaces)
	all := make([]unstructured.Unstructured, len(names))
	for i, name := range names {
		all[i] = r.found[name]
	}
	return r.Namespaces(ctx, all)
}

// empty deletes what a namespace has besides what stays.
func (r *remover) empty(ctx context.Context, namespace string) error {
	ns, err := r.Same([]unstructured.Unstructured{r.found[namespace]})(ctx)
	if err != nil {
		return err
	}
	if len(ns) == 0 {
		r.made = slices.DeleteFunc(r.made, func(n string) bool { return n == namespace })
		return nil
	}
	if err := r.keep(ctx, ns[0], keptPart); err != nil {
		return err
	}
	objs, _, err := r.Client.Everything(ctx, true, namespace, "")
	if err != nil {
		return err
	}
	r.env.Progress("emptying namespace %s, but for what stays", namespace)
	objs = slices.DeleteFunc(objs, func(o unstructured.Unstructured) bool { return removal.OfEveryNamespace(kube.MemberOf(&o)) })
	going, err := r.deleteBut(ctx, objs, map[string]bool{namespace: true})
	if err != nil {
		return err
	}
	return r.Gone(ctx, "what is in namespace "+namespace, r.Same(going))
}

func (r *remover) nodes(ctx context.Context) error {
	labels, err := r.nodeLabels(ctx)
	for _, l := range labels {
		if err := r.Client.UnlabelNode(ctx, l); err != nil {
			return err
		}
		if !slices.Contains(r.out.Nodes, l.Node) {
			r.out.Nodes = append(r.out.Nodes, l.Node)
		}
	}
	return err
}

// nodeLabels are the labels that Slipway gave nodes for the deployment, and that they still have.
func (r *remover) nodeLabels(ctx context.Context) ([]kube.NodeLabel, error) {
	labels, err := r.Client.NodeLabels(ctx, r.Deployment)
	if err != nil || len(labels) == 0 {
		return nil, err
	}
	nodes, err := r.Client.List(ctx, core("nodes"), "", "")
	return slices.DeleteFunc(labels, func(l kube.NodeLabel) bool {
		return !slices.ContainsFunc(nodes, func(n unstructured.Unstructured) bool { return l.On(&n) })
	}), err
}

// The values of kube.Kept.
const (
	keptPart = "part" // of what a component or a namespace has: a claim that the release keeps, or what says so itself
	keptUsed = "used" // a definition of which others have objects
	keptCRDs = "crds" // a definition that the release keeps
)

const definitionKind = "CustomResourceDefinition"

// elsewhere are the deployment's objects in namespaces that Slipway did not make.
func (r *remover) elsewhere(ctx context.Context) ([]unstructured.Unstructured, error) {
	objs, _, err := r.Client.Everything(ctx, true, "", r.Selector())
	return slices.DeleteFunc(objs, func(o unstructured.Unstructured) bool {
		return slices.Contains(r.made, o.GetNamespace()) || r.system && o.GetNamespace() == kube.SystemNamespace || !r.genuine(o)
	}), err
}

// outside are the deployment's cluster-scoped objects, except namespaces, volumes and nodes.
func (r *remover) outside(ctx context.Context) ([]unstructured.Unstructured, error) {
	objs, _, err := r.Client.Everything(ctx, false, "", r.Selector())
	return slices.DeleteFunc(objs, func(o unstructured.Unstructured) bool { return o.GetAPIVersion() == "v1" || !r.genuine(o) }), err
}

// deleteBut deletes objects but for those that stay, which it notes. It returns those that go.
// claims are the namespaces with claims that stay.
func (r *remover) deleteBut(ctx context.Context, objs []unstructured.Unstructured, claims map[string]bool) (going []unstructured.Unstructured, err error) {
	for _, o := range objs {
		if !r.stays(o, claims) {
			going = append(going, o)
		} else if err := r.keep(ctx, o, keptPart); err != nil {
			return nil, err
		}
	}
	return going, r.Delete(ctx, going)
}

// objects deletes the deployment's objects in others' namespaces, and its labels there.
func (r *remover) objects(ctx context.Context) error {
	claims, err := r.keptIn(ctx)
	if err != nil {
		return err
	}
	objs, err := r.elsewhere(ctx)
	if err != nil {
		return err
	}
	going, err := r.deleteBut(ctx, objs, claims)
	if err != nil {
		return err
	}
	for _, o := range going {
		r.out.Objects = append(r.out.Objects, o.GetKind()+" "+nameOf(o))
	}
	if err := r.Gone(ctx, "what is in namespaces of others", r.Same(going)); err != nil {
		return err
	}
	for _, name := range r.used {
		if err := r.Release(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// clusterScope deletes what the deployment has outside of namespaces, but for crds.
func (r *remover) clusterScope(ctx context.Context) error {
	objs, err := r.outside(ctx)
	if err != nil {
		return err
	}
	going, err := r.deleteBut(ctx, slices.DeleteFunc(objs, func(o unstructured.Unstructured) bool { return o.GetKind() == definitionKind }), nil)
	if err != nil {
		return err
	}
	for _, o := range going {
		r.out.Cluster = append(r.out.Cluster, o.GetKind()+"/"+o.GetName())
	}
	return r.Gone(ctx, "what is outside of namespaces", r.Same(going))
}
