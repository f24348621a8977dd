package infrastructure

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

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

// clusterScope deletes what the deployment has outside of namespaces, but for definitions.
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
