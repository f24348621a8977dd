package argo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// InCluster is the cluster that Argo CD runs in, in a destination.
const InCluster = "https://kubernetes.default.svc"

// Project is an AppProject.
func Project(namespace, name string, labels map[string]string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec":     spec,
	}}
	o.SetLabels(labels)
	return o
}

// Added is what others have added to an Application of Slipway's, for kube.ApplyOptions: fields
// of its spec, and annotations by which Argo CD treats it in another way, such as for ever
// leaving it alone. A push to the tree can bring both.
func Added(live, obj *unstructured.Unstructured) map[string]any {
	if obj.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: Applications().Group, Kind: "Application"}) {
		return nil
	}
	part := func(o *unstructured.Unstructured, path ...string) map[string]any {
		m, _, _ := unstructured.NestedMap(o.Object, path...)
		return m
	}
	notes := kube.Extra(part(live, "metadata", "annotations"), part(obj, "metadata", "annotations"))
	stopped := obj.GetLabels()[kube.AdoptedLabel] != "" && live.GetAnnotations()[StoppedAnnotation] != ""
	maps.DeleteFunc(notes, func(name string, _ any) bool {
		return !strings.HasPrefix(name, "argocd.argoproj.io/") || name == RefreshAnnotation || stopped && name == SkipReconcile
	})
	out := map[string]any{}
	if len(notes) > 0 {
		out["metadata"] = map[string]any{"annotations": notes}
	}
	if spec := kube.Extra(part(live, "spec"), part(obj, "spec")); spec != nil {
		out["spec"] = spec
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Cascade gives an Application that is about to be deleted the finalizer that takes its objects
// along.
func Cascade(ctx context.Context, c *kube.Client, app *unstructured.Unstructured) error {
	has := slices.ContainsFunc(app.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, CascadeFinalizer) })
	if has || app.GetDeletionTimestamp() != nil {
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{"finalizers": append(app.GetFinalizers(), CascadeFinalizer)}}
	return c.PatchObject(ctx, "prepare the deletion of Application "+app.GetNamespace()+"/"+app.GetName(), app, patch)
}

// Member is the Application of that name.
func Member(namespace, name string) kube.Member {
	return kube.Member{Kind: Applications().GroupVersion().WithKind("Application"), Namespace: namespace, Name: name}
}

// Brought reports whether Argo CD, which is in the namespace engine, has brought an object that an
// Application names. It marks what it brings with the Application. What it does not mark, such as
// definitions, it says only in the Application, which counts where nobody else may write to that.
func Brought(engine string, by, o *unstructured.Unstructured) bool {
	name := by.GetName()
	if by.GetNamespace() != engine {
		name = by.GetNamespace() + "_" + name
	}
	return kube.BroughtBy(o, map[string]bool{name: true}) && (by.GetNamespace() == engine || kube.TrackedBy(o) == name)
}

// Destinations are namespaces of InCluster, as an AppProject has them.
func Destinations(namespaces []string) []any {
	out := make([]any, len(namespaces))
	for i, n := range namespaces {
		out[i] = map[string]any{"server": InCluster, "namespace": n}
	}
	return out
}

// SyncPolicy keeps an Application as its source has it, for ever.
func SyncPolicy() map[string]any {
	return map[string]any{
		"automated": map[string]any{"prune": true, "selfHeal": true},
		"retry": map[string]any{
			"limit": int64(-1), "refresh": true,
			"backoff": map[string]any{"duration": "2s", "factor": int64(2), "maxDuration": "30s"},
		},
	}
}

// Refresh is the merge patch that makes the controller compare an Application anew.
func Refresh() []byte { return refreshWith(RefreshAnnotation, "normal") }

// HardRefresh is Refresh without what Argo CD has in its caches.
func HardRefresh() []byte { return refreshWith(RefreshAnnotation, "hard") }

// RefreshSet is the merge patch that makes the controller of ApplicationSets generate the
// Applications of one anew, from what the repositories have now.
func RefreshSet() []byte { return refreshWith(refreshSetAnnotation, "true") }

// RefreshingSet reports whether a refresh of an ApplicationSet was requested and is not
// done yet.
func RefreshingSet(o *unstructured.Unstructured) bool {
	_, requested := o.GetAnnotations()[refreshSetAnnotation]
	return requested
}

func refreshWith(annotation, value string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotation, value)
}

// Controller, RepoServer and Redis select Argo CD's own workloads, and their pods, by the
// label that its manifests and its chart give them, whatever they are called.
const (
	Controller = workload + "argocd-application-controller"
	RepoServer = workload + "argocd-repo-server"
	Redis      = workload + "argocd-redis"

	workload = "app.kubernetes.io/name="
)

// CompleteGenerators gives the generators of an ApplicationSet the empty fields with which its
// controller writes them back (Argo CD 3.6.1, applicationset_types.go: structs that are not
// pointers, which omitempty does not omit). Without these, each would undo the other's list.
func CompleteGenerators(o *unstructured.Unstructured) {
	spec, _ := o.Object["spec"].(map[string]any)
	complete(spec["generators"])
}

func complete(generators any) {
	list, _ := generators.([]any)
	for _, e := range list {
		g, _ := e.(map[string]any)
		for kind, e := range g {
			of, ok := e.(map[string]any)
			if !ok || kind == "selector" {
				continue
			}
			template := object(of, "template")
			object(template, "metadata")
			spec := object(template, "spec")
			object(spec, "destination")
			if _, ok := spec["project"]; !ok {
				spec["project"] = ""
			}
			switch kind {
			case "clusters":
				object(of, "selector")
			case "clusterDecisionResource":
				object(of, "labelSelector")
			case "matrix", "merge":
				// Those in these are kept as they are written.
				nested, _ := of["generators"].([]any)
				for _, e := range nested {
					if g, ok := e.(map[string]any); ok && g["matrix"] == nil && g["merge"] == nil {
						complete([]any{g})
					}
				}
			}
		}
	}
}

// object is a field that is an object; it is made where there is none.
func object(of map[string]any, field string) map[string]any {
	out, ok := of[field].(map[string]any)
	if !ok {
		out = map[string]any{}
		of[field] = out
	}
	return out
}
