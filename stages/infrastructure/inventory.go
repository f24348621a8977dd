package infrastructure

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
	"github.com/slipway-sh/slipway/stages/step"
)

// inventory lists what the deployment has in the cluster, and Terraform's resources.
func inventory(ctx context.Context, env *step.Env, in contract.InventoryInput) (contract.Inventory, error) {
	state, err := currentState(ctx, env)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return contract.Inventory{}, badState(err)
	}
	var out contract.Inventory
	for _, address := range state.addresses() {
		out.Objects = append(out.Objects, "Terraform resource "+address)
	}
	return count(ctx, env, in, out)
}

// platformInventory lists what the deployment has in the cluster, before Terraform destroys anything.
func platformInventory(ctx context.Context, env *step.Env, in contract.InventoryInput) (contract.Inventory, error) {
	return count(ctx, env, in, contract.Inventory{})
}

// count adds what the deployment has in the cluster to out.
func count(ctx context.Context, env *step.Env, in contract.InventoryInput, out contract.Inventory) (contract.Inventory, error) {
	if in.Gone {
		out.Unreachable = "the cluster was removed, with everything in it"
	} else {
		has, why, err := takeInventory(ctx, env, in)
		if err != nil {
			return out, err
		}
		out.Objects, out.Unreachable = append(out.Objects, has.names...), why
	}
	seen := "nothing is left"
	if len(out.Objects) > 0 {
		seen = "left: " + strings.Join(out.Objects, ", ")
	}
	if in.MustBeEmpty && len(out.Objects) > 0 {
		return out, &fault.Fault{
			Code: CodeRemove, Class: fault.Step, Op: "see that nothing is left",
			Fix: "run again: slipway destroy", Err: errors.New(seen),
		}
	}
	if out.Unreachable != "" {
		seen += "; " + out.Unreachable
	}
	env.Progress("%s", seen)
	return out, nil
}

// takeInventory looks into the cluster. If that does not answer, why says so.
func takeInventory(ctx context.Context, env *step.Env, in contract.InventoryInput) (has holdings, why string, err error) {
	limit := reachLimit
	if in.SkipUnreachable {
		limit = skipLimit
	}
	c, why, err := reach(ctx, env, limit, in.SkipUnreachable)
	if err != nil || c == nil {
		return has, why, err
	}
	r, err := newRemover(ctx, env, c, in.CRDs)
	if err == nil {
		err = r.take(ctx, &has)
	}
	return has, why, err
}

// holdings are what a deployment has in a cluster, each once, with its name: "Kind namespace/name".
type holdings struct {
	objects []unstructured.Unstructured
	names   []string
}

func (h *holdings) add(objs ...unstructured.Unstructured) {
	for _, o := range objs {
		if name := o.GetKind() + " " + nameOf(o); !slices.Contains(h.names, name) {
			h.objects, h.names = append(h.objects, o), append(h.names, name)
		}
	}
}

// take finds what the deployment has in the cluster, but for what stays.
func (r *remover) take(ctx context.Context, out *holdings) error {
	for _, part := range []part{r.findNamespaces, r.findApplications} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	going := slices.DeleteFunc(slices.Clone(r.made), func(n string) bool { return slices.Contains(r.kept, n) })
	if r.system {
		going = append(going, kube.SystemNamespace)
	}
	for _, name := range going {
		out.add(r.found[name])
	}
	claims, err := r.keptIn(ctx)
	if err != nil {
		return err
	}
	for _, n := range r.kept {
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
		objs, err := r.Client.List(ctx, kind.gvr, "", "")
		if err != nil {
			return err
		}
		for _, o := range objs {
			if r.ours(o) && !r.stays(o, claims) && (kind.is == nil || kind.is(o)) {
				out.add(o)
			}
		}
	}
	return r.takeOthers(ctx, going, claims, out)
}

// takeOthers finds volumes, nodes, and the objects that are in no namespace that goes. claims are
// the namespaces with claims that stay.
func (r *remover) takeOthers(ctx context.Context, going []string, claims map[string]bool, out *holdings) error {
	volumes, err := r.ownVolumes(ctx)
	if err != nil {
		return err
	}
	out.add(volumes...)
	labels, err := r.nodeLabels(ctx)
	if err != nil {
		return err
	}
	for _, l := range labels {
		if name := "label " + l.Key + " of Node " + l.Node; !slices.Contains(out.names, name) {
			out.names = append(out.names, name)
		}
	}
	var crds, all []unstructured.Unstructured
	for _, look := range []removal.Look{r.elsewhere, r.outside, r.brought} {
		objs, err := look(ctx)
		if err != nil {
			return err
		}
		all = append(all, objs...)
	}
	for _, o := range all {
		kept := o.GetLabels()[kube.Kept] != ""
		if o.GetKind() == definitionKind {
			kept = r.staysKept(o)
			crds = append(crds, o)
		}
		if !kept && !r.stays(o, claims) {
			out.add(o)
		}
	}
	elsewhere := func(o argo.Resource) bool { // what is in a namespace goes with it
		return o.Kind != definitionKind && !slices.Contains(going, o.Namespace) && !(o.Kind == "Namespace" && slices.Contains(going, o.Name))
	}
	err = r.ofApplications(ctx, elsewhere, func(o unstructured.Unstructured) {
		if !argo.Stays(&o) && !r.stays(o, claims) {
			out.add(o)
		}
	})
	if err != nil || r.Rules.CRDs != platform.RemoveDelete {
		return err
	}
	objs, err := r.instancesOf(crds)(ctx)
	for _, o := range objs { // these go with the crds, whoever has made them
		if !slices.Contains(going, o.GetNamespace()) {
			out.add(o)
		}
	}
	return err
}

func nameOf(o unstructured.Unstructured) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns + "/" + o.GetName()
	}
	return o.GetName()
}
