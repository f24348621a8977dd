package contract

// Progress is how far an install is: what `slipway status` says, and, for those who look at
// the cluster and do not have Slipway, the ConfigMap slipway-system/slipway-status.
type Progress string

// How far an install is. Before it is in progress, the cluster says nothing.
const (
	NotStarted Progress = "NotStarted"
	InProgress Progress = "InProgress"
	Waiting    Progress = "Waiting" // for what the message says
	Success    Progress = "Success"
	Failure    Progress = "Failed"
	Cancelled  Progress = "Cancelled" // on request; no step is left that could tell the cluster
	// Interrupted: the run was killed; no step is left that could tell the cluster.
	Interrupted Progress = "Interrupted"
	Lost        Progress = "Lost" // with the volume that the engine has removed; never in a cluster
)
