package kube

import "cmp"

// FieldManager is the name under which Slipway owns fields, and the value of the
// label ManagedBy.
const FieldManager = "slipway"

// DefaultClass is the annotation of the default StorageClass.
const DefaultClass = "storageclass.kubernetes.io/is-default-class"

// SystemNamespace holds what Slipway keeps in a cluster for itself.
const SystemNamespace = "slipway-system"

// Labels on what Slipway makes.
const (
	ManagedBy       = "app.kubernetes.io/managed-by"
	DeploymentLabel = "slipway.sh/deployment"
)

// formerDeploymentLabel is what earlier versions used in place of DeploymentLabel.
const formerDeploymentLabel = "slipway.dev/deployment"

// DeploymentOf returns the deployment that an object with these labels belongs to; empty
// when Slipway did not make it.
func DeploymentOf(labels map[string]string) string {
	return cmp.Or(labels[DeploymentLabel], labels[formerDeploymentLabel])
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
