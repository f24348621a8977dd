package kube

// FieldManager is the name under which Slipway owns fields, and the value of the
// label ManagedBy.
const FieldManager = "slipway"

// SystemNamespace holds what Slipway keeps in a cluster for itself.
const SystemNamespace = "slipway-system"

// Labels on what Slipway makes.
const (
	ManagedBy       = "app.kubernetes.io/managed-by"
	DeploymentLabel = "slipway.dev/deployment"
)

// Labels are on everything that Slipway makes for a deployment. The map is the
// caller's.
func Labels(deployment string) map[string]string {
	return map[string]string{ManagedBy: FieldManager, DeploymentLabel: deployment}
}
