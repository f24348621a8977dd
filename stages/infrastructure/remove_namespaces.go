package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
)

// keptClaims is the value of kube.Kept on what stays because a release keeps its claims.
const keptClaims = "claims"

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

// findNamespaces finds the namespaces that the deployment has.
func (r *remover) findNamespaces(ctx context.Context) error {
	list, err := r.Client.List(ctx, core("namespaces"), "", r.Selector())
	if err != nil {
		return err
	}
	r.born, r.uids = map[string]time.Time{}, map[string]types.UID{}
	for _, ns := range list {
		name := ns.GetName()
		if !r.genuine(ns) {
			continue
		}
		switch {
		case !kube.MadeNamespace(ns.GetLabels(), r.Deployment):
			r.used = append(r.used, name)
		case name == kube.SystemNamespace:
			r.system, r.uids[name], r.since = true, ns.GetUID(), ns.GetCreationTimestamp().Time
		default:
			r.made = append(r.made, name)
			r.born[name], r.uids[name] = ns.GetCreationTimestamp().Time, ns.GetUID()
			if err := r.findKept(ctx, ns); err != nil {
				return err
			}
		}
	}
	slices.Sort(r.made)
	return r.findAsked(ctx)
}

// findAsked notes the namespaces with objects of the deployment that say themselves that they
// stay.
func (r *remover) findAsked(ctx context.Context) error {
	if len(r.made) == 0 {
		return nil
	}
	resources, err := r.Client.Listable(ctx, true)
	if err != nil {
		return err
	}
	for _, gvr := range resources {
		objs, err := r.Client.List(ctx, gvr, "", r.Selector())
		if err != nil {
			return err
		}
		for _, o := range objs {
			if n := o.GetNamespace(); kube.Keeps(&o) && kube.WroteTo(&o) && slices.Contains(r.made, n) && !slices.Contains(r.kept, n) {
				r.kept = append(r.kept, n)
			}
		}
	}
	return nil
}

// findKept notes a namespace whose claims stay. That an earlier destroy kept them counts
// until the deployment is installed again.
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
		if slices.Contains(r.kept, name) || name == (checker{env: r.env}).namespace() {
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

// ours reports whether an object is the deployment's: by its label, or by a namespace that
// Slipway made.
func (r *remover) ours(o unstructured.Unstructured) bool {
	ours := kube.DeploymentOf(o.GetLabels()) == r.Deployment && kube.WroteTo(&o)
	if isApplication(&o) {
		ours = r.platform[o.GetUID()]
	}
	return ours || slices.Contains(r.made, o.GetNamespace()) ||
		r.system && o.GetNamespace() == kube.SystemNamespace
}

// genuine reports whether an object with the deployment's label is the deployment's. A copy
// of one, which somebody made or restored elsewhere, is noted and stays. What a controller
// has made for an object, with its labels, goes with that.
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

// stays reports whether an object says so itself, is a claim that the release keeps, or a Secret
// beside one, without which its data may be worth nothing.
func (r *remover) stays(o unstructured.Unstructured, claims map[string]bool) bool {
	if kube.Keeps(&o) { // which somebody else's does with a namespace that goes
		return !slices.Contains(r.made, o.GetNamespace()) || slices.Contains(r.kept, o.GetNamespace())
	}
	if r.Rules.Claims != platform.RemoveKeep && (o.GetLabels()[kube.Kept] == "" || r.recorded) {
		return false
	}
	switch kind, _, _ := unstructured.NestedString(o.Object, "type"); o.GetKind() {
	case "PersistentVolumeClaim":
		return true
	case "Secret":
		return claims[o.GetNamespace()] && kube.DeploymentOf(o.GetLabels()) == r.Deployment && kind != helmSecret && o.GetName() != kube.PullSecret
	}
	return false
}

// keptAsked is the value of kube.Kept on what says itself that it stays.
const keptAsked = "resource-policy"

func whyKept(o unstructured.Unstructured) string {
	if kube.Keeps(&o) {
		return keptAsked
	}
	return keptClaims
}

// keep notes that an object stays, in the cluster too.
func (r *remover) keep(ctx context.Context, gvr schema.GroupVersionResource, o unstructured.Unstructured, why string) error {
	name := o.GetKind() + " " + nameOf(o)
	if !slices.Contains(r.out.Kept, name) {
		r.out.Kept = append(r.out.Kept, name)
	}
	return r.Label(ctx, gvr, o, map[string]any{kube.Kept: why, kube.DeploymentLabel: r.Deployment})
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

// systemNamespace deletes Slipway's own namespace.
func (r *remover) systemNamespace(ctx context.Context) error {
	if !r.system {
		return nil
	}
	return r.deleteNamespaces(ctx, []string{kube.SystemNamespace})
}

func (r *remover) deleteNamespaces(ctx context.Context, names []string) error {
	r.out.Namespaces = append(r.out.Namespaces, names...)
	slices.Sort(r.out.Namespaces)
	uids := map[string]types.UID{}
	for _, name := range names {
		uids[name] = r.uids[name]
	}
	return r.Namespaces(ctx, uids)
}

// empty deletes what a namespace has besides what stays.
func (r *remover) empty(ctx context.Context, namespace string) error {
	ns, err := r.Namespace(ctx, namespace, r.uids[namespace])
	if err != nil {
		return err
	}
	if ns == nil {
		r.made = slices.DeleteFunc(r.made, func(n string) bool { return n == namespace })
		return nil
	}
	if err := r.keep(ctx, core("namespaces"), *ns, keptClaims); err != nil {
		return err
	}
	resources, err := r.Client.Listable(ctx, true)
	if err != nil {
		return err
	}
	r.env.Progress("emptying namespace %s, but for what stays", namespace)
	var deleted []unstructured.Unstructured
	for _, gvr := range resources {
		objs, err := r.Client.List(ctx, gvr, namespace, "")
		if err != nil {
			return err
		}
		var going []unstructured.Unstructured
		for _, o := range objs {
			switch {
			case removal.OfEveryNamespace(&o):
			case r.stays(o, map[string]bool{namespace: true}):
				if err := r.keep(ctx, gvr, o, whyKept(o)); err != nil {
					return err
				}
			default:
				going = append(going, o)
			}
		}
		if err := r.Delete(ctx, gvr, going); err != nil {
			return err
		}
		deleted = append(deleted, going...)
	}
	return r.Gone(ctx, "what is in namespace "+namespace, r.sameObjects(deleted))
}

// sameObjects looks for objects that are still the same: controllers may make others of
// their names.
func (r *remover) sameObjects(objs []unstructured.Unstructured) func(context.Context) ([]unstructured.Unstructured, error) {
	return func(ctx context.Context) ([]unstructured.Unstructured, error) {
		var left []unstructured.Unstructured
		for _, o := range objs {
			live, err := r.Client.Live(ctx, kube.MemberOf(&o))
			if err != nil {
				return nil, err
			}
			if live != nil && live.GetUID() == o.GetUID() {
				left = append(left, *live)
			}
		}
		return left, nil
	}
}

// release takes the deployment's labels off the namespaces that it used.
func (r *remover) release(ctx context.Context) error {
	for _, name := range r.used {
		if err := r.Release(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// nodes takes off the labels that Slipway gave nodes for the deployment.
func (r *remover) nodes(ctx context.Context) error {
	nodes, err := r.labelledNodes(ctx)
	for _, n := range nodes {
		if err := r.Client.UnlabelNode(ctx, r.Deployment, n.GetName()); err != nil {
			return err
		}
		r.out.Nodes = append(r.out.Nodes, n.GetName())
	}
	return err
}

// findNodes fails if somebody has edited which labels Slipway gave a node.
func (r *remover) findNodes(ctx context.Context) error {
	_, err := r.labelledNodes(ctx)
	return err
}

// labelledNodes are the nodes that Slipway gave labels for the deployment.
func (r *remover) labelledNodes(ctx context.Context) ([]unstructured.Unstructured, error) {
	nodes, err := r.Client.List(ctx, core("nodes"), "", "")
	if err != nil {
		return nil, err
	}
	var out []unstructured.Unstructured
	var errs []error
	for _, n := range nodes {
		given, err := r.Client.LabelsGiven(ctx, r.Deployment, &n)
		errs = append(errs, err)
		if len(given) > 0 {
			out = append(out, n)
		}
	}
	return out, errors.Join(errs...)
}
