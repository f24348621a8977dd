package infrastructure

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
)

func definitionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

func (r *remover) ownCRDs(ctx context.Context) error {
	all, err := r.Client.List(ctx, definitionResource(), "", r.Selector())
	if err != nil {
		return err
	}
	return r.removeCRDs(ctx, slices.DeleteFunc(all, func(d unstructured.Unstructured) bool { return !r.genuine(d) }))
}

// older reports whether a definition was, or may have been, there before the deployment.
func (r *remover) older(d unstructured.Unstructured) bool {
	return r.since.IsZero() || d.GetCreationTimestamp().Time.Before(r.since)
}

// brought are the crds that the platform's Applications have brought, and that have no
// label yet: a removal gives them the deployment's (see markOwned).
func (r *remover) brought(ctx context.Context) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	err := r.ofApplications(ctx, func(o argo.Resource) bool { return o.Kind == definitionKind }, func(d unstructured.Unstructured) {
		if kube.DeploymentOf(d.GetLabels()) == "" && !r.older(d) {
			out = append(out, d)
		}
	})
	return out, err
}

// staysKept reports whether a definition is known to stay: because the release keeps it, or an
// earlier removal has. One that stays while others have objects of it, only a removal finds out.
func (r *remover) staysKept(d unstructured.Unstructured) bool {
	if r.recorded || r.Rules.CRDs == platform.RemoveDelete {
		return r.Rules.CRDs == platform.RemoveKeep
	}
	return d.GetLabels()[kube.Kept] != ""
}

// removeCRDs deletes CustomResourceDefinitions, each unless the release keeps it or
// others have objects of it: first all objects of them, then the crds.
func (r *remover) removeCRDs(ctx context.Context, all []unstructured.Unstructured) error {
	var going, objects []unstructured.Unstructured
	for _, d := range all {
		goes, err := r.definitionGoes(ctx, d)
		if err != nil {
			return err
		}
		if !goes {
			continue
		}
		going = append(going, d)
		objs, err := r.deleteInstances(ctx, d)
		if err != nil {
			return err
		}
		objects = append(objects, objs...)
	}
	if len(going) == 0 {
		return nil
	}
	// Who answers for their finalizers may be gone.
	if err := r.Gone(ctx, "objects of CustomResourceDefinitions", r.Same(objects)); err != nil {
		return err
	}
	for _, d := range going {
		r.out.Cluster = append(r.out.Cluster, d.GetKind()+"/"+d.GetName())
	}
	if err := r.Delete(ctx, going); err != nil {
		return err
	}
	// A definition waits for objects that somebody has made since.
	if err := r.Gone(ctx, "objects of CustomResourceDefinitions", r.instancesOf(going)); err != nil {
		return err
	}
	return r.Gone(ctx, "CustomResourceDefinitions", r.Same(going))
}

// definitionGoes reports whether a definition goes; one that stays is noted.
func (r *remover) definitionGoes(ctx context.Context, d unstructured.Unstructured) (bool, error) {
	if r.Rules.CRDs == platform.RemoveDelete {
		return true, nil
	}
	if r.Rules.CRDs == platform.RemoveKeep || !r.recorded && d.GetLabels()[kube.Kept] == keptCRDs {
		return false, r.keep(ctx, d, keptCRDs)
	}
	objs, err := r.instances(ctx, d)
	if err != nil || len(objs) == 0 {
		return err == nil, err
	}
	r.env.Progress("%s stays: there are objects of it that are not the platform's: %s", d.GetName(), kube.Left(objs))
	return false, r.keep(ctx, d, keptUsed)
}

// deleteInstances deletes the objects of a definition that goes, and returns them.
func (r *remover) deleteInstances(ctx context.Context, d unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	// The webhook that converts them may be gone, and they would be neither listed nor deleted.
	if strategy, _, _ := unstructured.NestedString(d.Object, "spec", "conversion", "strategy"); strategy == "Webhook" {
		plain := map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}}}
		if err := r.Client.PatchObject(ctx, "leave the objects of "+d.GetName()+" unconverted", &d, plain); err != nil {
			return nil, err
		}
	}
	objs, err := r.instances(ctx, d)
	if err != nil {
		return nil, err
	}
	for _, o := range objs {
		r.out.Objects = append(r.out.Objects, o.GetKind()+" "+nameOf(o))
	}
	return objs, r.Delete(ctx, objs)
}

func (r *remover) instancesOf(crds []unstructured.Unstructured) removal.Look {
	return func(ctx context.Context) ([]unstructured.Unstructured, error) {
		var out []unstructured.Unstructured
		for _, d := range crds {
			objs, err := r.instances(ctx, d)
			if err != nil {
				return nil, err
			}
			out = append(out, objs...)
		}
		return out, nil
	}
}

func (r *remover) instances(ctx context.Context, d unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	gvr, ok := served(d)
	if !ok {
		return nil, nil
	}
	return r.Client.List(ctx, gvr, "", "")
}

// served is the resource of a definition in a version that the API has; there may be none.
func served(d unstructured.Unstructured) (gvr schema.GroupVersionResource, ok bool) {
	group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
	resource, _, _ := unstructured.NestedString(d.Object, "spec", "names", "plural")
	for _, v := range kube.Entries(&d, "spec", "versions") {
		if v["served"] == true {
			version, _ := v["name"].(string)
			return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, true
		}
	}
	return gvr, false
}
