package kube

import (
	"context"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ArgoManager is the name under which Argo CD owns fields.
const ArgoManager = "argocd-controller"

// BroughtBy reports whether Argo CD has brought an object, by one of the Applications. It
// marks no definitions, nor, where it is set to use a label, anything else: of these it has to
// have written to one.
func BroughtBy(o metav1.Object, applications map[string]bool) bool {
	if marked(o) {
		return applications[TrackedBy(o)]
	}
	return writtenBy(o, ArgoManager)
}

// Brought reports whether Argo CD has brought an object, by whichever Application.
func Brought(o metav1.Object) bool { return marked(o) || writtenBy(o, ArgoManager) }

// TrackedBy is the Application of Argo CD that brought an object; empty if none has.
func TrackedBy(o metav1.Object) string {
	app, _, _ := strings.Cut(o.GetAnnotations()[TrackingID], ":")
	return app
}

// Track marks an object as brought by an Application, if it is there and was brought by
// another one.
func (c *Client) Track(ctx context.Context, m Member, from, to string) error {
	live, err := c.Live(ctx, m)
	if err != nil || live == nil || TrackedBy(live) != from {
		return err
	}
	id := live.GetAnnotations()[TrackingID]
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{TrackingID: to + strings.TrimPrefix(id, from)}, "uid": live.GetUID(),
	}})
	if err != nil {
		return err
	}
	api, err := c.Resource(ctx, m.Kind, m.Namespace)
	if err != nil {
		return err
	}
	return ifThere(c.Retry(ctx, "mark "+m.String(), func(ctx context.Context) error {
		_, err := api.Patch(ctx, m.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
		return err
	}))
}
