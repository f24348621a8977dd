package kube

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldManager is the name under which Slipway owns fields, and the value of the
// label ManagedBy.
const FieldManager = "slipway"

// DefaultClass is the annotation of the default StorageClass.
const DefaultClass = "storageclass.kubernetes.io/is-default-class"

// ProvisionedBy is the annotation of volumes that a provisioner made for a claim. Others are
// statically provisioned by somebody else.
const ProvisionedBy = "pv.kubernetes.io/provisioned-by"

// SystemNamespace holds what Slipway keeps in a cluster for itself.
const SystemNamespace = "slipway-system"

// ChecksNamespace is the namespace of the checks of storage and load balancer by use.
func ChecksNamespace(deployment string) string { return "slipway-checks-" + deployment }

// Labels on what Slipway makes.
const (
	ManagedBy       = "app.kubernetes.io/managed-by"
	DeploymentLabel = "slipway.sh/deployment"
)

// IdentityAnnotation, on SystemNamespace, tells the deployment in the cluster from others of its
// name: it is the ID of its contract.Identity.
const IdentityAnnotation = "slipway.sh/identity"

// AdoptedLabel is on the Application that has taken a component over which Slipway had
// installed first; the value says whether that is Argo CD itself.
const (
	AdoptedLabel  = "slipway.sh/adopted"
	AdoptedEngine = "engine"
	AdoptedOther  = "component"
)

// DeploymentOf returns the deployment that an object with these labels belongs to; empty
// when Slipway did not make it.
func DeploymentOf(labels map[string]string) string {
	return labels[DeploymentLabel]
}

// Kept is the label of what a destroy left on purpose: a namespace with claims, a
// definition. Its value says why.
const Kept = "slipway.sh/kept"

// Keeps reports whether an object says that it outlasts what it is part of, in the annotation that
// Helm has for that.
func Keeps(o metav1.Object) bool { return o.GetAnnotations()["helm.sh/resource-policy"] == "keep" }

// IsHook reports whether an object is one of a hook of a chart.
func IsHook(o metav1.Object) bool { return o.GetAnnotations()["helm.sh/hook"] != "" }

// Ours reports whether an object belongs to a deployment: it has its label or, where
// somebody has taken that off, Slipway has written to it.
func Ours(o metav1.Object, deployment string) bool {
	if owner := DeploymentOf(o.GetLabels()); owner != "" {
		return owner == deployment
	}
	return written(o)
}

// TrackingID is the annotation by which Argo CD knows its own:
// "application:group/Kind:namespace/name".
const TrackingID = "argocd.argoproj.io/tracking-id"

// WroteTo reports whether Slipway has written to an object, or Argo CD owns it. An object that has
// the deployment's label and neither is a copy, made from the cluster or from a backup.
func WroteTo(o metav1.Object) bool {
	return marked(o) || written(o)
}

func marked(o metav1.Object) bool {
	id := o.GetAnnotations()[TrackingID]
	where := "/" + o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		where = ":" + ns + where
	}
	return id != "" && strings.HasSuffix(id, where)
}

func written(o metav1.Object) bool { return writtenBy(o, FieldManager) }

func writtenBy(o metav1.Object, manager string) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == manager && f.Subresource == ""
	})
}

// MadeNamespace reports whether Slipway made a namespace with these labels for a
// deployment. A namespace that it only uses has the deployment's label without ManagedBy: it
// stays, and so does what is in it and is not Slipway's.
func MadeNamespace(labels map[string]string, deployment string) bool {
	return DeploymentOf(labels) == deployment && labels[ManagedBy] == FieldManager
}

// Labels are on everything that Slipway makes for a deployment. The map is the
// caller's.
func Labels(deployment string) map[string]string {
	return map[string]string{ManagedBy: FieldManager, DeploymentLabel: deployment}
}

// SaltSecret, in SystemNamespace, holds under SaltKey what is mixed into the digests of
// secrets that others may read.
const (
	SaltSecret = "slipway-salt"
	SaltKey    = "salt"
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
