package installed

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

// mark labels the deployment's claims and volumes, so that a destroy finds them after an interruption.
func (d *deployment) mark(ctx context.Context) error {
	if err := d.markClaims(ctx); err != nil {
		return err
	}
	if err := d.shield(ctx); err != nil {
		return err
	}
	volumes, err := d.ownVolumes(ctx)
	if err != nil {
		return err
	}
	for i := range volumes {
		d.out.Volumes = append(d.out.Volumes, volumes[i].GetName())
		if err := d.Client.Label(ctx, &volumes[i], map[string]any{kube.DeploymentLabel: d.Deployment}); err != nil {
			return err
		}
	}
	return nil
}

// markClaims labels the claims of the deployment's StatefulSets in others' namespaces.
func (d *deployment) markClaims(ctx context.Context) error {
	sets, err := d.Client.List(ctx, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, "", d.Selector())
	if err != nil {
		return err
	}
	for _, o := range sets {
		if slices.Contains(d.made, o.GetNamespace()) || !d.genuine(o) {
			continue
		}
		if err := d.Client.MarkClaims(ctx, &o, d.Deployment); err != nil {
			return err
		}
	}
	return nil
}

// shield makes the claims that stay, and the Secrets beside them, outlast what made them, by an option for
// Argo CD and without owners.
func (d *deployment) shield(ctx context.Context) (err error) {
	if d.Rules.Claims != platform.RemoveKeep {
		return nil
	}
	if d.shielded, err = d.keptIn(ctx); err != nil {
		return err
	}
	for _, name := range d.kept {
		d.shielded[name] = true
	}
	for _, resource := range []string{"persistentvolumeclaims", "secrets"} {
		objs, err := d.Client.List(ctx, core(resource), "", "")
		if err != nil {
			return err
		}
		for _, o := range objs {
			if !d.ours(o) || !d.stays(o, d.shielded) {
				continue
			}
			patch := map[string]any{"metadata": map[string]any{
				"annotations": map[string]any{argo.SyncOptions: argo.NotDeleted(o.GetAnnotations()[argo.SyncOptions])}, "ownerReferences": nil,
			}}
			if err := d.Client.PatchObject(ctx, "keep "+kube.MemberOf(&o).String(), &o, patch); err != nil {
				return err
			}
		}
	}
	return nil
}

// isShielded reports whether a component's removal leaves an object.
func (d *deployment) isShielded(m kube.Member) bool {
	return m.Kind.Group == "" && m.Kind.Kind == "Secret" && d.shielded[m.Namespace]
}

// ownVolumes are the volumes of the deployment that do not stay.
func (d *deployment) ownVolumes(ctx context.Context) ([]unstructured.Unstructured, error) {
	volumes, err := d.Client.List(ctx, core("persistentvolumes"), "", "")
	if err != nil {
		return nil, err
	}
	claims, err := d.Client.List(ctx, core("persistentvolumeclaims"), "", "")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(volumes, func(o unstructured.Unstructured) bool { return !d.ownVolume(o, claims) }), nil
}

// ownVolume reports whether a volume was made for a claim of the deployment. A claim that is gone was the
// deployment's if the volume is not older than Slipway's namespace of that name. A volume with somebody
// else's claim is theirs, also with the deployment's label.
func (d *deployment) ownVolume(o unstructured.Unstructured, claims []unstructured.Unstructured) bool {
	ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", "claimRef")
	at := slices.IndexFunc(claims, func(c unstructured.Unstructured) bool {
		return c.GetNamespace() == ref["namespace"] && c.GetName() == ref["name"] && string(c.GetUID()) == ref["uid"]
	})
	if at >= 0 && (d.stays(claims[at], nil) || !d.ours(claims[at])) {
		return false
	}
	if at >= 0 && !slices.Contains(d.made, ref["namespace"]) && !deletedWithClaim(o) && !slices.ContainsFunc(d.listed, func(m kube.Member) bool { return claimOf(m, claims[at]) }) {
		return false // whoever may write to that claim may have said that it is the deployment's
	}
	if kube.DeploymentOf(o.GetLabels()) == d.Deployment && kube.WroteTo(&o) {
		return true
	}
	if ref["namespace"] == "" || o.GetAnnotations()[kube.ProvisionedBy] == "" {
		return false
	}
	if at >= 0 {
		return true
	}
	ns, made := d.found[ref["namespace"]]
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
func (d *deployment) volumes(ctx context.Context) error {
	first, err := d.ownVolumes(ctx)
	if err != nil || len(first) == 0 {
		return err
	}
	var now []unstructured.Unstructured
	for _, v := range first {
		if !slices.Contains(d.out.Volumes, v.GetName()) {
			d.out.Volumes = append(d.out.Volumes, v.GetName())
		}
		if !deletedWithClaim(v) {
			now = append(now, v)
		}
	}
	if err := d.Delete(ctx, now); err != nil {
		return err
	}
	d.Progress("waiting for %d volumes to be removed", len(first))
	limited, cancel := context.WithTimeout(ctx, d.Limit())
	defer cancel()
	err = d.Client.WaitFor(limited, "the volumes to be removed", kube.Poll, func(ctx context.Context) (bool, string, error) {
		left, err := d.ownVolumes(ctx)
		return err == nil && len(left) == 0, kube.Left(left), err
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	d.Log.Warn("volumes do not go by themselves", "error", err)
	left, err := d.ownVolumes(ctx)
	if err != nil {
		return err
	}
	if err := d.Delete(ctx, left); err != nil {
		return err
	}
	return d.GoneAfter(ctx, volumeGone, "the volumes", d.ownVolumes)
}

// keptIn are the namespaces with claims that stay.
func (d *deployment) keptIn(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	if d.recorded && d.Rules.Claims != platform.RemoveKeep {
		return out, nil
	}
	claims, err := d.Client.List(ctx, core("persistentvolumeclaims"), metav1.NamespaceAll, d.Selector())
	for _, c := range claims {
		if d.stays(c, nil) {
			out[c.GetNamespace()] = true
		}
	}
	return out, err
}
