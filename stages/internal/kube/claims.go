package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// MarkClaims gives the claims that an object of a deployment has made, if it is a StatefulSet, the
// deployment's label: they outlast it, and have none of their own by which a destroy would find them.
func (c *Client) MarkClaims(ctx context.Context, o *unstructured.Unstructured, deployment string) error {
	if !MemberOf(o).MakesClaims() {
		return nil
	}
	var set appsv1.StatefulSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &set); err != nil {
		return fmt.Errorf("read %s: %w", describe(o), err)
	}
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	gvr := corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	claims, err := c.List(ctx, gvr, o.GetNamespace(), "")
	if err != nil {
		return err
	}
	for i := range claims {
		claim := &claims[i]
		if !madeFor(&set, claim.GetName()) || DeploymentOf(claim.GetLabels()) == deployment && WroteTo(claim) {
			continue
		}
		if err := c.Label(ctx, claim, map[string]any{DeploymentLabel: deployment}); err != nil {
			return err
		}
	}
	return nil
}

// madeFor reports whether a claim's name is one that a StatefulSet gives: template-set-0.
func madeFor(set *appsv1.StatefulSet, claim string) bool {
	return slices.ContainsFunc(set.Spec.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool {
		number, ok := strings.CutPrefix(claim, t.Name+"-"+set.Name+"-")
		return ok && number != "" && strings.Trim(number, "0123456789") == ""
	})
}

// MakesClaims reports whether an object makes claims that outlast it.
func (m Member) MakesClaims() bool {
	return m.Kind.Group == appsv1.GroupName && m.Kind.Kind == "StatefulSet"
}
