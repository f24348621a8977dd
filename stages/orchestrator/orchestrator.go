// Package orchestrator has the steps that bring up the apps: they push the GitOps tree to
// the git server, create the root Application, and wait until Argo CD reports every app
// Synced and Healthy at the pushed commit.
package orchestrator

import (
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// The codes of this package's faults.
const (
	// CodeSet: the Applications are not those of the platform release.
	CodeSet fault.Code = "ORC-003"
	// CodeFailed: an app was not Synced and Healthy in time, for the cause that
	// the error names.
	CodeFailed fault.Code = "ORC-005"
)

const (
	// RootApp is the name of the Application that brings all others, in Argo CD's
	// namespace.
	RootApp = "root"
	// RootChart is the folder of the GitOps tree with the chart that makes the Applications, and
	// RootValues the file in it that Slipway fills in.
	RootChart  = "root-app"
	RootValues = "slipway.yaml"
)

// Register adds the code of the stage's steps to r.
func Register(r *step.Registry) {
	step.Register(r, contract.PublishStep(), step.Repeatable(runPublish))
	step.Register(r, contract.ProjectsStep(), step.Repeatable(runProjects))
	step.Register(r, contract.SyncStep(), step.Repeatable(runSync))
	step.Register(r, contract.PruneStep(), step.Repeatable(runPrune))
	step.Register(r, contract.StatusStep(), step.Once(runStatus))
}
