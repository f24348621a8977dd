package kube

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
