package infrastructure

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// provisionedBy is the annotation of volumes that a provisioner made for a claim. Others
// are statically provisioned by somebody else.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// mark labels the deployment's claims and volumes, so that a destroy finds them after an interruption.
func (r *remover) mark(ctx context.Context) error {
	if err := r.markClaims(ctx); err != nil {
		return err
	}
	if err := r.shield(ctx); err != nil {
		return err
	}
	volumes, err := r.ownVolumes(ctx)
	if err != nil {
		return err
	}
	for i := range volumes {
		r.out.Volumes = append(r.out.Volumes, volumes[i].GetName())
		if err := r.Client.Label(ctx, &volumes[i], map[string]any{kube.DeploymentLabel: r.Deployment}); err != nil {
			return err
		}
	}
	return nil
}

// markClaims labels the claims of the deployment's StatefulSets in others' namespaces.
func (r *remover) markClaims(ctx context.Context) error {
	sets, err := r.Client.List(ctx, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, "", r.Selector())
	if err != nil {
		return err
	}
	for _, o := range sets {
		if slices.Contains(r.made, o.GetNamespace()) || !r.genuine(o) {
			continue
		}
		if err := r.Client.MarkClaims(ctx, &o, r.Deployment); err != nil {
			return err
		}
	}
	return nil
}

// shield makes the claims that stay, and the Secrets beside them, outlast what made them, by an option for
// Argo CD and without owners.
func (r *remover) shield(ctx context.Context) (err error) {
	if r.Rules.Claims != platform.RemoveKeep {
		return nil
	}
	if r.shielded, err = r.keptIn(ctx); err != nil {
		return err
	}
	for _, name := range r.kept {
		r.shielded[name] = true
	}
	for _, resource := range []string{"persistentvolumeclaims", "secrets"} {
		objs, err := r.Client.List(ctx, core(resource), "", "")
		if err != nil {
			return err
		}
		for _, o := range objs {
			if !r.ours(o) || !r.stays(o, r.shielded) {
				continue
			}
			patch := map[string]any{"metadata": map[string]any{
				"annotations": map[string]any{argo.SyncOptions: argo.NotDeleted(o.GetAnnotations()[argo.SyncOptions])}, "ownerReferences": nil,
			}}
			if err := r.Client.PatchObject(ctx, "keep "+o.GetKind()+" "+nameOf(o), &o, patch); err != nil {
				return err
			}
		}
	}
	return nil
}

// isShielded reports whether a component's removal leaves an object.
func (r *remover) isShielded(m kube.Member) bool {
	return m.Kind.Group == "" && m.Kind.Kind == "Secret" && r.shielded[m.Namespace]
}

// ownVolumes are the volumes of the deployment that do not stay.
func (r *remover) ownVolumes(ctx context.Context) ([]unstructured.Unstructured, error) {
	volumes, err := r.Client.List(ctx, core("persistentvolumes"), "", "")
	if err != nil {
		return nil, err
	}
	claims, err := r.Client.List(ctx, core("persistentvolumeclaims"), "", "")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(volumes, func(o unstructured.Unstructured) bool { return !r.ownVolume(o, claims) }), nil
}

// ownVolume reports whether a volume was made for a claim of the deployment. A claim that is gone was the
// deployment's if the volume is not older than Slipway's namespace of that name. A volume with somebody
// else's claim is theirs, also with the deployment's label.
func (r *remover) ownVolume(o unstructured.Unstructured, claims []unstructured.Unstructured) bool {
	ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", "claimRef")
	at := slices.IndexFunc(claims, func(c unstructured.Unstructured) bool {
		return c.GetNamespace() == ref["namespace"] && c.GetName() == ref["name"] && string(c.GetUID()) == ref["uid"]
	})
	if at >= 0 && (r.stays(claims[at], nil) || !r.ours(claims[at])) {
		return false
	}
	if at >= 0 && !slices.Contains(r.made, ref["namespace"]) && !deletedWithClaim(o) && !slices.ContainsFunc(r.listed, func(m kube.Member) bool { return claimOf(m, claims[at]) }) {
		return false // whoever may write to that claim may have said that it is the deployment's
	}
	if kube.DeploymentOf(o.GetLabels()) == r.Deployment && kube.WroteTo(&o) {
		return true
	}
	if ref["namespace"] == "" || o.GetAnnotations()[provisionedBy] == "" {
		return false
	}
	if at >= 0 {
		return true
	}
	ns, made := r.found[ref["namespace"]]
	return made && !o.GetCreationTimestamp().Time.Before(ns.GetCreationTimestamp().Time)
}

// claimOf reports whether a claim is the member, or a StatefulSet that is has made it.
func claimOf(m kube.Member, claim unstructured.Unstructured) bool {
	if m.MakesClaims() && m.Namespace == claim.GetNamespace() {
		name := strings.TrimRight(claim.GetName(), "0123456789")
		return name != claim.GetName() && strings.HasSuffix(name, "-"+m.Name+"-")
	}
	return m.Same(kube.MemberOf(&claim))
}

// deletedWithClaim reports whether Kubernetes deletes a volume with its claim.
func deletedWithClaim(v unstructured.Unstructured) bool {
	policy, _, _ := unstructured.NestedString(v.Object, "spec", "persistentVolumeReclaimPolicy")
	return policy == string(corev1.PersistentVolumeReclaimDelete)
}

// volumes waits until the deployment's volumes are gone, and deletes those that stay.
func (r *remover) volumes(ctx context.Context) error {
	first, err := r.ownVolumes(ctx)
	if err != nil || len(first) == 0 {
		return err
	}
	var now []unstructured.Unstructured
	for _, v := range first {
		if !slices.Contains(r.out.Volumes, v.GetName()) {
			r.out.Volumes = append(r.out.Volumes, v.GetName())
		}
		if !deletedWithClaim(v) {
			now = append(now, v)
		}
	}
	if err := r.Delete(ctx, now); err != nil {
		return err
	}
	r.env.Progress("waiting for %d volumes to be removed", len(first))
	limited, cancel := context.WithTimeout(ctx, r.Limit())
	defer cancel()
	err = r.Client.WaitFor(limited, "the volumes to be removed", kube.Poll, func(ctx context.Context) (bool, string, error) {
		left, err := r.ownVolumes(ctx)
		return err == nil && len(left) == 0, kube.Left(left), err
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	r.env.Logger.Warn("volumes do not go by themselves", "error", err)
	left, err := r.ownVolumes(ctx)
	if err != nil {
		return err
	}
	if err := r.Delete(ctx, left); err != nil {
		return err
	}
	return r.GoneAfter(ctx, volumeGone, "the volumes", r.ownVolumes)
}

// keptIn are the namespaces with claims that stay.
func (r *remover) keptIn(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	if r.recorded && r.Rules.Claims != platform.RemoveKeep {
		return out, nil
	}
	claims, err := r.Client.List(ctx, core("persistentvolumeclaims"), metav1.NamespaceAll, r.Selector())
	for _, c := range claims {
		if r.stays(c, nil) {
			out[c.GetNamespace()] = true
		}
	}
	return out, err
}
