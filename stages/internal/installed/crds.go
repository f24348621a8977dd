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

func definitionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

func (d *deployment) ownCRDs(ctx context.Context) error {
	all, err := d.Client.List(ctx, definitionResource(), "", d.Selector())
	if err != nil {
		return err
	}
	return d.removeCRDs(ctx, slices.DeleteFunc(all, func(crd unstructured.Unstructured) bool { return !d.genuine(crd) }))
}

// older reports whether a definition was, or may have been, there before the deployment.
func (d *deployment) older(crd unstructured.Unstructured) bool {
	return d.since.IsZero() || crd.GetCreationTimestamp().Time.Before(d.since)
}

// brought are the crds that the platform's Applications have brought, and that have no
// label yet: a removal gives them the deployment's (see markOwned).
func (d *deployment) brought(ctx context.Context) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	err := d.ofApplications(ctx, func(o argo.Resource) bool { return o.Kind == definitionKind }, func(crd unstructured.Unstructured) {
		if kube.DeploymentOf(crd.GetLabels()) == "" && !d.older(crd) {
			out = append(out, crd)
		}
	})
	return out, err
}

// staysKept reports whether a definition is known to stay: because the release keeps it, or an
// earlier removal has. One that stays while others have objects of it, only a removal finds out.
func (d *deployment) staysKept(crd unstructured.Unstructured) bool {
	if d.recorded || d.Rules.CRDs == platform.RemoveDelete {
		return d.Rules.CRDs == platform.RemoveKeep
	}
	return crd.GetLabels()[kube.Kept] != ""
}

// removeCRDs deletes CustomResourceDefinitions, each unless the release keeps it or
// others have objects of it: first all objects of them, then the crds.
func (d *deployment) removeCRDs(ctx context.Context, all []unstructured.Unstructured) error {
	var going, objects []unstructured.Unstructured
	for _, crd := range all {
		goes, err := d.definitionGoes(ctx, crd)
		if err != nil {
			return err
		}
		if !goes {
			continue
		}
		going = append(going, crd)
		objs, err := d.deleteInstances(ctx, crd)
		if err != nil {
			return err
		}
		objects = append(objects, objs...)
	}
	if len(going) == 0 {
		return nil
	}
	// Who answers for their finalizers may be gone.
	if err := d.Gone(ctx, "objects of CustomResourceDefinitions", d.Same(objects)); err != nil {
		return err
	}
	for _, crd := range going {
		d.out.Cluster = append(d.out.Cluster, crd.GetKind()+"/"+crd.GetName())
	}
	if err := d.Delete(ctx, going); err != nil {
		return err
	}
	// A definition waits for objects that somebody has made since.
	if err := d.Gone(ctx, "objects of CustomResourceDefinitions", d.instancesOf(going)); err != nil {
		return err
	}
	return d.Gone(ctx, "CustomResourceDefinitions", d.Same(going))
}

// definitionGoes reports whether a definition goes; one that stays is noted.
func (d *deployment) definitionGoes(ctx context.Context, crd unstructured.Unstructured) (bool, error) {
	if d.Rules.CRDs == platform.RemoveDelete {
		return true, nil
	}
	if d.Rules.CRDs == platform.RemoveKeep || !d.recorded && crd.GetLabels()[kube.Kept] == keptCRDs {
		return false, d.keep(ctx, crd, keptCRDs)
	}
	objs, err := d.instances(ctx, crd)
	if err != nil || len(objs) == 0 {
		return err == nil, err
	}
	d.Progress("%s stays: there are objects of it that are not the platform's: %s", crd.GetName(), kube.Left(objs))
	return false, d.keep(ctx, crd, keptUsed)
}

// deleteInstances deletes the objects of a definition that goes, and returns them.
func (d *deployment) deleteInstances(ctx context.Context, crd unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	// The webhook that converts them may be gone, and they would be neither listed nor deleted.
	if strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy"); strategy == "Webhook" {
		plain := map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}}}
		if err := d.Client.PatchObject(ctx, "leave the objects of "+crd.GetName()+" unconverted", &crd, plain); err != nil {
			return nil, err
		}
	}
	objs, err := d.instances(ctx, crd)
	if err != nil {
		return nil, err
	}
	for _, o := range objs {
		d.out.Objects = append(d.out.Objects, kube.MemberOf(&o).String())
	}
	return objs, d.Delete(ctx, objs)
}

func (d *deployment) instancesOf(crds []unstructured.Unstructured) Look {
	return func(ctx context.Context) ([]unstructured.Unstructured, error) {
		var out []unstructured.Unstructured
		for _, crd := range crds {
			objs, err := d.instances(ctx, crd)
			if err != nil {
				return nil, err
			}
			out = append(out, objs...)
		}
		return out, nil
	}
}

func (d *deployment) instances(ctx context.Context, crd unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	gvr, ok := served(crd)
	if !ok {
		return nil, nil
	}
	return d.Client.List(ctx, gvr, "", "")
}

// served is the resource of a definition in a version that the API has; there may be none.
func served(crd unstructured.Unstructured) (gvr schema.GroupVersionResource, ok bool) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	resource, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	for _, v := range kube.Entries(&crd, "spec", "versions") {
		if v["served"] == true {
			version, _ := v["name"].(string)
			return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, true
		}
	}
	return gvr, false
}
