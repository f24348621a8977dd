package installed

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

func (d *deployment) findNamespaces(ctx context.Context) error {
	list, err := d.Client.List(ctx, core("namespaces"), "", d.Selector())
	if err != nil {
		return err
	}
	d.found = map[string]unstructured.Unstructured{}
	for _, ns := range list {
		name := ns.GetName()
		if !d.genuine(ns) {
			continue
		}
		switch {
		case !kube.MadeNamespace(ns.GetLabels(), d.Deployment):
			d.used = append(d.used, name)
		case name == kube.SystemNamespace:
			d.system, d.found[name], d.since = true, ns, ns.GetCreationTimestamp().Time
		default:
			d.made, d.found[name] = append(d.made, name), ns
			if err := d.findKept(ctx, ns); err != nil {
				return err
			}
		}
	}
	slices.Sort(d.made)
	return d.findMarked(ctx)
}

// findMarked notes the namespaces with objects of the deployment that have a mark to stay.
func (d *deployment) findMarked(ctx context.Context) error {
	if len(d.made) == 0 {
		return nil
	}
	objs, _, err := d.Client.Everything(ctx, true, "", d.Selector())
	for _, o := range objs {
		if n := o.GetNamespace(); kube.Keeps(&o) && kube.WroteTo(&o) && slices.Contains(d.made, n) && !slices.Contains(d.kept, n) {
			d.kept = append(d.kept, n)
		}
	}
	return err
}

// findKept notes a namespace whose claims stay, also because an earlier destroy kept them.
func (d *deployment) findKept(ctx context.Context, ns unstructured.Unstructured) error {
	before := ns.GetLabels()[kube.Kept] != "" && !d.recorded
	if !before && d.Rules.Claims != platform.RemoveKeep {
		return nil
	}
	claims, err := d.Client.List(ctx, core("persistentvolumeclaims"), ns.GetName(), "")
	if err == nil && len(claims) > 0 {
		d.kept = append(d.kept, ns.GetName())
	}
	return err
}

// known ends the removal where claims would be deleted though nothing says any more whether
// the release keeps them. An install that was killed before it said so has none.
func (d *deployment) known(ctx context.Context) error {
	if d.recorded {
		return nil
	}
	var lost []string
	for _, name := range d.made {
		if slices.Contains(d.kept, name) || name == kube.ChecksNamespace(d.Deployment) {
			continue
		}
		claims, err := d.Client.List(ctx, core("persistentvolumeclaims"), name, "!"+kube.Kept)
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
func (d *deployment) ours(o unstructured.Unstructured) bool {
	ours := kube.DeploymentOf(o.GetLabels()) == d.Deployment && kube.WroteTo(&o)
	if isApplication(&o) {
		ours = d.platform[o.GetUID()]
	}
	return ours || slices.Contains(d.made, o.GetNamespace()) ||
		d.system && o.GetNamespace() == kube.SystemNamespace
}

// genuine reports whether an object with the deployment's label is the deployment's. A copy that somebody
// made or restored stays, and is noted unless it has an owner, with which it goes.
func (d *deployment) genuine(o unstructured.Unstructured) bool {
	name := kube.MemberOf(&o).String() + " (a copy: Slipway has not written to it)"
	switch {
	case isApplication(&o):
		if d.platform[o.GetUID()] {
			return true
		}
		name = kube.MemberOf(&o).String() + " (with the deployment's label, though Slipway did not make it)"
	case kube.WroteTo(&o):
		return true
	}
	if len(o.GetOwnerReferences()) == 0 && o.GetKind() != "Endpoints" && !slices.Contains(d.out.Kept, name) {
		d.out.Kept = append(d.out.Kept, name)
	}
	return false
}

// stays reports whether an object is marked to stay, a claim that the release keeps, or a Secret beside one.
func (d *deployment) stays(o unstructured.Unstructured, claims map[string]bool) bool {
	if kube.Keeps(&o) { // which somebody else's does with a namespace that goes
		return !slices.Contains(d.made, o.GetNamespace()) || slices.Contains(d.kept, o.GetNamespace())
	}
	if d.Rules.Claims != platform.RemoveKeep && (o.GetLabels()[kube.Kept] == "" || d.recorded) {
		return false
	}
	switch o.GetKind() {
	case "PersistentVolumeClaim":
		return true
	case "Secret":
		return claims[o.GetNamespace()] && kube.DeploymentOf(o.GetLabels()) == d.Deployment && o.GetName() != kube.PullSecret
	}
	return false
}

// keep notes that an object stays, in the cluster too.
func (d *deployment) keep(ctx context.Context, o unstructured.Unstructured, why string) error {
	name := kube.MemberOf(&o).String()
	if !slices.Contains(d.out.Kept, name) {
		d.out.Kept = append(d.out.Kept, name)
	}
	return d.Client.Label(ctx, &o, map[string]any{kube.Kept: why, kube.DeploymentLabel: d.Deployment})
}

// namespaces deletes the namespaces that Slipway made, all at a time. Of one with claims or other
// objects that stay it deletes everything else.
func (d *deployment) namespaces(ctx context.Context) error {
	names := slices.DeleteFunc(slices.Clone(d.made), func(n string) bool { return slices.Contains(d.kept, n) })
	if err := d.deleteNamespaces(ctx, names); err != nil {
		return err
	}
	d.made = slices.Clone(d.kept) // what has one of the other names now is somebody else's
	for _, name := range d.kept {
		if err := d.empty(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (d *deployment) systemNamespace(ctx context.Context) error {
	if !d.system {
		return nil
	}
	return d.deleteNamespaces(ctx, []string{kube.SystemNamespace})
}

func (d *deployment) deleteNamespaces(ctx context.Context, names []string) error {
	d.out.Namespaces = append(d.out.Namespaces, names...)
	slices.Sort(d.out.Namespaces)
	all := make([]unstructured.Unstructured, len(names))
	for i, name := range names {
		all[i] = d.found[name]
	}
	return d.Namespaces(ctx, all)
}

// empty deletes what a namespace has besides what stays.
func (d *deployment) empty(ctx context.Context, namespace string) error {
	ns, err := d.Same([]unstructured.Unstructured{d.found[namespace]})(ctx)
	if err != nil {
		return err
	}
	if len(ns) == 0 {
		d.made = slices.DeleteFunc(d.made, func(n string) bool { return n == namespace })
		return nil
	}
	if err := d.keep(ctx, ns[0], keptPart); err != nil {
		return err
	}
	objs, _, err := d.Client.Everything(ctx, true, namespace, "")
	if err != nil {
		return err
	}
	d.Progress("emptying namespace %s, but for what stays", namespace)
	objs = slices.DeleteFunc(objs, func(o unstructured.Unstructured) bool { return OfEveryNamespace(kube.MemberOf(&o)) })
	going, err := d.deleteBut(ctx, objs, map[string]bool{namespace: true})
	if err != nil {
		return err
	}
	return d.Gone(ctx, "what is in namespace "+namespace, d.Same(going))
}

func (d *deployment) nodes(ctx context.Context) error {
	labels, err := d.nodeLabels(ctx)
	for _, l := range labels {
		if err := d.Client.UnlabelNode(ctx, l); err != nil {
			return err
		}
		if !slices.Contains(d.out.Nodes, l.Node) {
			d.out.Nodes = append(d.out.Nodes, l.Node)
		}
	}
	return err
}

// nodeLabels are the labels that Slipway gave nodes for the deployment, and that they still have.
func (d *deployment) nodeLabels(ctx context.Context) ([]kube.NodeLabel, error) {
	labels, err := d.Client.NodeLabels(ctx, d.Deployment)
	if err != nil || len(labels) == 0 {
		return nil, err
	}
	nodes, err := d.Client.List(ctx, core("nodes"), "", "")
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
func (d *deployment) elsewhere(ctx context.Context) ([]unstructured.Unstructured, error) {
	objs, _, err := d.Client.Everything(ctx, true, "", d.Selector())
	return slices.DeleteFunc(objs, func(o unstructured.Unstructured) bool {
		return slices.Contains(d.made, o.GetNamespace()) || d.system && o.GetNamespace() == kube.SystemNamespace || !d.genuine(o)
	}), err
}

// outside are the deployment's cluster-scoped objects, except namespaces, volumes and nodes.
func (d *deployment) outside(ctx context.Context) ([]unstructured.Unstructured, error) {
	objs, _, err := d.Client.Everything(ctx, false, "", d.Selector())
	return slices.DeleteFunc(objs, func(o unstructured.Unstructured) bool { return o.GetAPIVersion() == "v1" || !d.genuine(o) }), err
}

// deleteBut deletes objects but for those that stay, which it notes. It returns those that go.
// claims are the namespaces with claims that stay.
func (d *deployment) deleteBut(ctx context.Context, objs []unstructured.Unstructured, claims map[string]bool) (going []unstructured.Unstructured, err error) {
	for _, o := range objs {
		if !d.stays(o, claims) {
			going = append(going, o)
		} else if err := d.keep(ctx, o, keptPart); err != nil {
			return nil, err
		}
	}
	return going, d.Delete(ctx, going)
}

// objects deletes the deployment's objects in others' namespaces, and its labels there.
func (d *deployment) objects(ctx context.Context) error {
	claims, err := d.keptIn(ctx)
	if err != nil {
		return err
	}
	objs, err := d.elsewhere(ctx)
	if err != nil {
		return err
	}
	going, err := d.deleteBut(ctx, objs, claims)
	if err != nil {
		return err
	}
	for _, o := range going {
		d.out.Objects = append(d.out.Objects, kube.MemberOf(&o).String())
	}
	if err := d.Gone(ctx, "what is in namespaces of others", d.Same(going)); err != nil {
		return err
	}
	for _, name := range d.used {
		if err := d.Release(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// clusterScope deletes what the deployment has outside of namespaces, but for crds.
func (d *deployment) clusterScope(ctx context.Context) error {
	objs, err := d.outside(ctx)
	if err != nil {
		return err
	}
	going, err := d.deleteBut(ctx, slices.DeleteFunc(objs, func(o unstructured.Unstructured) bool { return o.GetKind() == definitionKind }), nil)
	if err != nil {
		return err
	}
	for _, o := range going {
		d.out.Cluster = append(d.out.Cluster, o.GetKind()+"/"+o.GetName())
	}
	return d.Gone(ctx, "what is outside of namespaces", d.Same(going))
}
