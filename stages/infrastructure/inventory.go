package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// inventory lists what the deployment has in the cluster, Terraform's resources
// included.
func inventory(ctx context.Context, env *step.Env, in contract.InventoryInput) (contract.Inventory, error) {
	state, err := currentState(ctx, env)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return contract.Inventory{}, badState(err)
	}
	return count(ctx, env, in, contract.Inventory{TerraformResources: state.addresses()})
}

// platformInventory lists what the deployment has in the cluster, while Terraform's
// resources are still there.
func platformInventory(ctx context.Context, env *step.Env, in contract.InventoryInput) (contract.Inventory, error) {
	return count(ctx, env, in, contract.Inventory{})
}

// count adds what the deployment has in the cluster to out.
func count(ctx context.Context, env *step.Env, in contract.InventoryInput, out contract.Inventory) (contract.Inventory, error) {
	if in.Gone {
		out.Unreachable = "the cluster was removed, with everything in it"
	} else if err := ask(ctx, env, in, &out); err != nil {
		return out, err
	}
	if in.MustBeEmpty && !out.Empty() {
		return out, &fault.Fault{
			Code: CodeRemove, Class: fault.Step, Op: "see that nothing is left",
			Fix: "run again: slipway destroy", Err: errors.New(left(out)),
		}
	}
	seen := "nothing is left"
	if !out.Empty() {
		seen = left(out)
	}
	if out.Unreachable != "" {
		seen += "; " + out.Unreachable
	}
	env.Progress("%s", seen)
	return out, nil
}

// ask looks into the cluster, if it answers.
func ask(ctx context.Context, env *step.Env, in contract.InventoryInput, out *contract.Inventory) error {
	limit := reachLimit
	if in.SkipUnreachable {
		limit = skipLimit
	}
	c, why, err := reach(ctx, env, limit, in.SkipUnreachable)
	if err != nil {
		return err
	}
	out.Unreachable = why
	if c == nil {
		return nil
	}
	r, err := newRemover(ctx, env, c, in.Definitions)
	if err != nil {
		return err
	}
	return r.take(ctx, out)
}

// take fills in what the deployment has in the cluster.
func (r *remover) take(ctx context.Context, out *contract.Inventory) error {
	for _, part := range []func(context.Context) error{r.findNamespaces, r.findApplications} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	out.Namespaces = slices.DeleteFunc(slices.Clone(r.made), func(n string) bool { return slices.Contains(r.kept, n) })
	if r.system {
		out.Namespaces = append(out.Namespaces, kube.SystemNamespace)
	}
	claims, err := r.keptIn(ctx)
	if err != nil {
		return err
	}
	for _, n := range r.kept {
		claims[n] = true
	}
	for _, part := range []struct {
		gvr  schema.GroupVersionResource
		into *[]string
		is   func(o unstructured.Unstructured) bool
	}{
		{argo.Applications(), &out.Applications, nil},
		{core("persistentvolumeclaims"), &out.PersistentVolumeClaims, nil},
		{core("services"), &out.LoadBalancers, func(o unstructured.Unstructured) bool {
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "type")
			return kind == "LoadBalancer"
		}},
	} {
		objs, err := r.Client.List(ctx, part.gvr, "", "")
		if err != nil {
			return err
		}
		for _, o := range objs {
			if r.ours(o) && !r.stays(o, claims) && (part.is == nil || part.is(o)) {
				*part.into = append(*part.into, nameOf(o))
			}
		}
		slices.Sort(*part.into)
	}
	return r.takeOthers(ctx, claims, out)
}

// takeOthers fills in volumes, nodes, and the objects that are in no namespace of the
// deployment's. claims are the namespaces with claims that stay.
func (r *remover) takeOthers(ctx context.Context, claims map[string]bool, out *contract.Inventory) error {
	volumes, err := r.ownVolumes(ctx)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		out.PersistentVolumes = append(out.PersistentVolumes, v.GetName())
	}
	labels, err := r.nodeLabels(ctx)
	if err != nil {
		return err
	}
	for _, l := range labels {
		if !slices.Contains(out.Nodes, l.Node) {
			out.Nodes = append(out.Nodes, l.Node)
		}
	}
	named := slices.Concat(out.Applications, out.PersistentVolumeClaims, out.LoadBalancers)
	var definitions []unstructured.Unstructured
	elsewhere, err := r.elsewhere(ctx)
	if err != nil {
		return err
	}
	outside, err := r.outside(ctx)
	if err != nil {
		return err
	}
	brought, err := r.brought(ctx)
	if err != nil {
		return err
	}
	for _, o := range slices.Concat(elsewhere, outside, brought) {
		kept := o.GetLabels()[kube.Kept] != ""
		if o.GetKind() == definitionKind {
			kept = r.staysKept(o)
			definitions = append(definitions, o)
		}
		if name := o.GetKind() + " " + nameOf(o); !kept && !r.stays(o, claims) && !slices.Contains(named, nameOf(o)) && !slices.Contains(out.Objects, name) {
			out.Objects = append(out.Objects, name)
		}
	}
	if err := r.takeBrought(ctx, claims, out); err != nil || r.Rules.CRDs != platform.RemoveDelete {
		return err
	}
	objs, err := r.instancesOf(definitions)(ctx)
	for _, o := range objs { // these go with the definitions, whoever has made them
		name := o.GetKind() + " " + nameOf(o)
		if !slices.Contains(out.Namespaces, o.GetNamespace()) && !slices.Contains(out.Objects, name) {
			out.Objects = append(out.Objects, name)
		}
	}
	return err
}

// takeBrought fills in what the platform's Applications have brought elsewhere: it goes with
// them.
func (r *remover) takeBrought(ctx context.Context, claims map[string]bool, out *contract.Inventory) error {
	elsewhere := func(o argo.Resource) bool {
		named := slices.Concat(out.Applications, out.PersistentVolumeClaims, out.LoadBalancers)
		return o.Kind != definitionKind && !slices.Contains(out.Namespaces, o.Namespace) && !(o.Kind == "Namespace" && slices.Contains(out.Namespaces, o.Name)) &&
			!slices.Contains(named, path.Join(o.Namespace, o.Name))
	}
	return r.ofApplications(ctx, elsewhere, func(o unstructured.Unstructured) {
		name := o.GetKind() + " " + nameOf(o)
		if !argo.Stays(&o) && !r.stays(o, claims) && !slices.Contains(out.Objects, name) {
			out.Objects = append(out.Objects, name)
		}
	})
}

func nameOf(o unstructured.Unstructured) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns + "/" + o.GetName()
	}
	return o.GetName()
}

func left(i contract.Inventory) string {
	var out []string
	for _, part := range []struct {
		what  string
		names []string
	}{
		{"namespaces", i.Namespaces},
		{"applications", i.Applications},
		{"volumes", i.PersistentVolumes},
		{"volume claims", i.PersistentVolumeClaims},
		{"load balancers", i.LoadBalancers},
		{"objects", i.Objects},
		{"labels of nodes", i.Nodes},
		{"Terraform resources", i.TerraformResources},
	} {
		if len(part.names) > 0 {
			out = append(out, fmt.Sprintf("%s %s", part.what, strings.Join(part.names, ", ")))
		}
	}
	return "left: " + strings.Join(out, "; ")
}
