package installed

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Inventory is what a deployment has in a cluster, each object once.
type Inventory struct {
	Objects []unstructured.Unstructured
	Names   []string // "Kind namespace/name", and "label KEY of Node NAME"
}

func (h *Inventory) add(objs ...unstructured.Unstructured) {
	for _, o := range objs {
		if name := kube.MemberOf(&o).String(); !slices.Contains(h.Names, name) {
			h.Objects, h.Names = append(h.Objects, o), append(h.Names, name)
		}
	}
}

// Inventory lists what the deployment has in the cluster, but for what stays: with crds, as Platform has it.
func (r *Remover) Inventory(ctx context.Context, crds bool) (out Inventory, err error) {
	d, err := r.deployment(ctx, crds)
	if err == nil {
		err = d.take(ctx, &out)
	}
	return out, err
}

func (d *deployment) take(ctx context.Context, out *Inventory) error {
	for _, part := range []part{d.findNamespaces, d.findApplications} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	going := slices.DeleteFunc(slices.Clone(d.made), func(n string) bool { return slices.Contains(d.kept, n) })
	if d.system {
		going = append(going, kube.SystemNamespace)
	}
	for _, name := range going {
		out.add(d.found[name])
	}
	claims, err := d.keptIn(ctx)
	if err != nil {
		return err
	}
	for _, n := range d.kept {
		claims[n] = true
	}
	for _, kind := range []struct {
		gvr schema.GroupVersionResource
		is  func(o unstructured.Unstructured) bool
	}{
		{argo.Applications(), nil},
		{core("persistentvolumeclaims"), nil},
		{core("services"), func(o unstructured.Unstructured) bool {
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "type")
			return kind == "LoadBalancer"
		}},
	} {
		objs, err := d.Client.List(ctx, kind.gvr, "", "")
		if err != nil {
			return err
		}
		for _, o := range objs {
			if d.ours(o) && !d.stays(o, claims) && (kind.is == nil || kind.is(o)) {
				out.add(o)
			}
		}
	}
	return d.takeOthers(ctx, going, claims, out)
}

// takeOthers finds volumes, nodes, and the objects that are in no namespace that goes. claims are
// the namespaces with claims that stay.
func (d *deployment) takeOthers(ctx context.Context, going []string, claims map[string]bool, out *Inventory) error {
	volumes, err := d.ownVolumes(ctx)
	if err != nil {
		return err
	}
	out.add(volumes...)
	labels, err := d.nodeLabels(ctx)
	if err != nil {
		return err
	}
	for _, l := range labels {
		if name := "label " + l.Key + " of Node " + l.Node; !slices.Contains(out.Names, name) {
			out.Names = append(out.Names, name)
		}
	}
	var crds, all []unstructured.Unstructured
	for _, look := range []Look{d.elsewhere, d.outside, d.brought} {
		objs, err := look(ctx)
		if err != nil {
			return err
		}
		all = append(all, objs...)
	}
	for _, o := range all {
		kept := o.GetLabels()[kube.Kept] != ""
		if o.GetKind() == definitionKind {
			kept = d.staysKept(o)
			crds = append(crds, o)
		}
		if !kept && !d.stays(o, claims) {
			out.add(o)
		}
	}
	elsewhere := func(o argo.Resource) bool { // what is in a namespace goes with it
		return o.Kind != definitionKind && !slices.Contains(going, o.Namespace) && !(o.Kind == "Namespace" && slices.Contains(going, o.Name))
	}
	err = d.ofApplications(ctx, elsewhere, func(o unstructured.Unstructured) {
		if !argo.Stays(&o) && !d.stays(o, claims) {
			out.add(o)
		}
	})
	if err != nil || d.Rules.CRDs != platform.RemoveDelete {
		return err
	}
	objs, err := d.instancesOf(crds)(ctx)
	for _, o := range objs { // these go with the crds, whoever has made them
		if !slices.Contains(going, o.GetNamespace()) {
			out.add(o)
		}
	}
	return err
}

// nameOf is "namespace/name", or the name of an object outside of namespaces.
func nameOf(o unstructured.Unstructured) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns + "/" + o.GetName()
	}
	return o.GetName()
}
