package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// inventory lists what there is beside the cluster itself, Terraform's resources
// included.
func inventory(ctx context.Context, env *step.Env, in contract.InventoryInput) (contract.Inventory, error) {
	state, err := currentState(ctx, env)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return contract.Inventory{}, badState(env, err)
	}
	return count(ctx, env, in, contract.Inventory{TerraformResources: state.addresses()})
}

// platformInventory lists what there is in the cluster, while Terraform's
// resources are still there.
func platformInventory(ctx context.Context, env *step.Env, in contract.InventoryInput) (contract.Inventory, error) {
	return count(ctx, env, in, contract.Inventory{})
}

// count adds what the cluster holds to out.
func count(ctx context.Context, env *step.Env, in contract.InventoryInput, out contract.Inventory) (contract.Inventory, error) {
	if in.Gone {
		out.Unreachable = "the cluster was removed, with everything in it"
	} else if err := ask(ctx, env, in, &out); err != nil {
		return out, err
	}
	if in.MustBeEmpty && !out.Empty() {
		return out, &fault.Fault{
			Code: CodeNotEmpty, Class: fault.Step, Op: "see that nothing is left",
			Fix: "run again: slipway destroy", Err: errors.New(left(out)),
		}
	}
	env.Progress("%s", told(out))
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
	return take(ctx, c, out)
}

// take fills in what the cluster holds.
func take(ctx context.Context, c *kube.Client, out *contract.Inventory) error {
	for _, part := range []struct {
		gvr      schema.GroupVersionResource
		selector string
		into     *[]string
		keep     func(o unstructured.Unstructured) bool
	}{
		{schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", &out.Namespaces, func(o unstructured.Unstructured) bool {
			return !systemNamespace(o.GetName())
		}},
		{argo.Applications(), "", &out.Applications, nil},
		{schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, "", &out.PersistentVolumes, nil},
		{schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, "", &out.PersistentVolumeClaims, nil},
		{schema.GroupVersionResource{Version: "v1", Resource: "services"}, "", &out.LoadBalancers, func(o unstructured.Unstructured) bool {
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "type")
			return kind == "LoadBalancer"
		}},
		{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "owner=helm", &out.HelmReleases, func(o unstructured.Unstructured) bool {
			kind, _, _ := unstructured.NestedString(o.Object, "type")
			return kind == "helm.sh/release.v1"
		}},
	} {
		objs, err := c.List(ctx, part.gvr, "", part.selector)
		if err != nil {
			return err
		}
		for _, o := range objs {
			if part.keep == nil || part.keep(o) {
				*part.into = append(*part.into, nameOf(o))
			}
		}
		slices.Sort(*part.into)
	}
	// A release has a Secret per revision; its name is a label.
	out.HelmReleases = slices.Compact(out.HelmReleases)
	return nil
}

func nameOf(o unstructured.Unstructured) string {
	name := o.GetName()
	if o.GetKind() == "Secret" {
		name = o.GetLabels()["name"]
	}
	if ns := o.GetNamespace(); ns != "" {
		return ns + "/" + name
	}
	return name
}

func systemNamespace(name string) bool {
	return name == "default" || strings.HasPrefix(name, "kube-")
}

// told is the inventory in one line.
func told(i contract.Inventory) string {
	seen := "nothing is left"
	if !i.Empty() {
		seen = left(i)
	}
	if i.Unreachable != "" {
		seen += "; " + i.Unreachable
	}
	return seen
}

// left names what is left, for people.
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
		{"Helm releases", i.HelmReleases},
		{"Terraform resources", i.TerraformResources},
	} {
		if len(part.names) > 0 {
			out = append(out, fmt.Sprintf("%s %s", part.what, strings.Join(part.names, ", ")))
		}
	}
	return "left: " + strings.Join(out, "; ")
}
