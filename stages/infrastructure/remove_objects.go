package infrastructure

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// keptUsed and keptCRDs are values of kube.Kept on definitions that stay: others have
// objects of them, or the release keeps them.
const (
	keptUsed = "used"
	keptCRDs = "crds"
)

const definitionKind = "CustomResourceDefinition"

// elsewhere lists the deployment's objects in namespaces that Slipway did not make, by
// their resources.
func (r *remover) elsewhere(ctx context.Context, each func(schema.GroupVersionResource, []unstructured.Unstructured) error) error {
	resources, err := r.Client.Listable(ctx, true)
	if err != nil {
		return err
	}
	for _, gvr := range resources {
		objs, err := r.Client.List(ctx, gvr, "", r.Selector())
		if err != nil {
			return err
		}
		objs = slices.DeleteFunc(objs, func(o unstructured.Unstructured) bool {
			return slices.Contains(r.made, o.GetNamespace()) || r.system && o.GetNamespace() == kube.SystemNamespace || !r.genuine(o)
		})
		if len(objs) == 0 {
			continue
		}
		if err := each(gvr, objs); err != nil {
			return err
		}
	}
	return nil
}

// objects deletes what the deployment has in namespaces that Slipway did not make, and
// takes its labels off these.
func (r *remover) objects(ctx context.Context) error {
	claims, err := r.keptIn(ctx)
	if err != nil {
		return err
	}
	var deleted []unstructured.Unstructured
	err = r.elsewhere(ctx, func(gvr schema.GroupVersionResource, objs []unstructured.Unstructured) error {
		var going []unstructured.Unstructured
		for _, o := range objs {
			if r.stays(o, claims) {
				if err := r.keep(ctx, gvr, o, whyKept(o)); err != nil {
					return err
				}
				continue
			}
			going = append(going, o)
			r.out.Objects = append(r.out.Objects, o.GetKind()+" "+nameOf(o))
		}
		deleted = append(deleted, going...)
		return r.Delete(ctx, gvr, going)
	})
	if err != nil {
		return err
	}
	if err := r.Gone(ctx, "what is in namespaces of others", r.sameObjects(deleted)); err != nil {
		return err
	}
	return r.release(ctx)
}

// outside lists the deployment's objects of the cluster's own scope, but for namespaces
// and volumes, by their resources.
func (r *remover) outside(ctx context.Context, each func(schema.GroupVersionResource, []unstructured.Unstructured) error) error {
	resources, err := r.Client.Listable(ctx, false)
	if err != nil {
		return err
	}
	for _, gvr := range resources {
		if gvr == core("namespaces") || gvr == core("persistentvolumes") || gvr == core("nodes") {
			continue
		}
		objs, err := r.Client.List(ctx, gvr, "", r.Selector())
		if err != nil {
			return err
		}
		objs = slices.DeleteFunc(objs, func(o unstructured.Unstructured) bool { return !r.genuine(o) })
		if len(objs) == 0 {
			continue
		}
		if err := each(gvr, objs); err != nil {
			return err
		}
	}
	return nil
}

// clusterScope deletes what the deployment has outside of namespaces, but for definitions.
func (r *remover) clusterScope(ctx context.Context) error {
	return r.outside(ctx, func(gvr schema.GroupVersionResource, objs []unstructured.Unstructured) error {
		if objs[0].GetKind() == definitionKind {
			return nil
		}
		var going []unstructured.Unstructured
		for _, o := range objs {
			if !kube.Keeps(&o) {
				going = append(going, o)
			} else if err := r.keep(ctx, gvr, o, keptAsked); err != nil {
				return err
			}
		}
		return r.deleteOutside(ctx, gvr, going)
	})
}

// deleteOutside deletes objects of one kind and waits until they are gone.
func (r *remover) deleteOutside(ctx context.Context, gvr schema.GroupVersionResource, objs []unstructured.Unstructured) error {
	for _, o := range objs {
		r.out.Cluster = append(r.out.Cluster, o.GetKind()+"/"+o.GetName())
	}
	if err := r.Delete(ctx, gvr, objs); err != nil {
		return err
	}
	return r.Gone(ctx, gvr.Resource, r.sameObjects(objs))
}
