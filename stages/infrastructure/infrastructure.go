// Package infrastructure is the step code of the infrastructure stage, for every
// provider: preflight, Terraform, the wait for the cluster, storage and load
// balancer verified by using them, and their removal.
package infrastructure

import (
	"context"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/step"
)

// Stage is the stage's name.
const Stage = "infrastructure"

// The codes of this package's faults.
const (
	CodePreflight    fault.Code = "INF-008" // the machine does not meet the requirements
	CodeInit         fault.Code = "INF-001" // terraform init
	CodePlan         fault.Code = "INF-002" // terraform plan
	CodeApply        fault.Code = "INF-003" // terraform apply
	CodeOutput       fault.Code = "INF-004" // the root's outputs are not those of a provider
	CodeStateLocked  fault.Code = "INF-005" // somebody else holds the Terraform state
	CodeDestroy      fault.Code = "INF-006" // terraform destroy
	CodeState        fault.Code = "INF-007" // the Terraform state cannot be read
	CodeAPI          fault.Code = "INF-010" // the cluster's API or nodes did not come up in time
	CodeStorage      fault.Code = "INF-020" // the storage class does not keep data
	CodeLoadBalancer fault.Code = "INF-021" // the load balancer does not answer
	CodeRemove       fault.Code = "INF-030" // something could not be removed
	CodeNotEmpty     fault.Code = "INF-031" // something is left
)

// Register adds the stage's steps to r:
//
//	infrastructure/preflight          stages.PreflightInput → stages.Preflight
//	infrastructure/terraform          stages.TerraformInput → stages.Infrastructure
//	infrastructure/cluster            stages.ClusterInput   → stages.Cluster
//	infrastructure/storage            stages.ClusterInput   → stages.StorageCheck
//	infrastructure/loadbalancer       stages.ClusterInput   → stages.LoadBalancerCheck
//	infrastructure/platform-remove    stages.RemoveInput    → stages.Removed
//	infrastructure/platform-inventory stages.InventoryInput → stages.Inventory
//	infrastructure/inventory          stages.InventoryInput → stages.Inventory
//	infrastructure/terraform-destroy  stages.TerraformInput → stages.TerraformDestroyed
func Register(r *step.Registry) {
	tools := toolchain{dir: "/usr/local/bin", lockTimeout: lockTimeout}
	step.Register(r, Stage, "preflight", step.Step[stages.PreflightInput, stages.Preflight]{
		Run: tools.preflight, Verify: verifyPreflight,
	})
	step.Register(r, Stage, "terraform", step.Step[stages.TerraformInput, stages.Infrastructure]{
		Run: tools.terraform, Verify: verifyTerraform,
	})
	step.Register(r, Stage, "terraform-destroy", step.Step[stages.TerraformInput, stages.TerraformDestroyed]{Run: tools.terraformDestroy})
	step.Register(r, Stage, "cluster", step.Step[stages.ClusterInput, stages.Cluster]{Run: cluster, Repeat: true})
	step.Register(r, Stage, "storage", step.Step[stages.ClusterInput, stages.StorageCheck]{Run: storage, Verify: verifyStorage})
	step.Register(r, Stage, "loadbalancer", step.Step[stages.ClusterInput, stages.LoadBalancerCheck]{
		Run: loadBalancer, Verify: verifyLoadBalancer,
	})
	step.Register(r, Stage, "platform-remove", step.Step[stages.RemoveInput, stages.Removed]{Run: platformRemove})
	step.Register(r, Stage, "platform-inventory", step.Step[stages.InventoryInput, stages.Inventory]{Run: platformInventory})
	step.Register(r, Stage, "inventory", step.Step[stages.InventoryInput, stages.Inventory]{Run: inventory})
}

// toolchain is where the tools are.
type toolchain struct {
	dir         string
	lockTimeout string // as Terraform reads it
}

func (t toolchain) path(tool string) string { return t.dir + "/" + tool }

// checkLabel tells which check an object belongs to.
const checkLabel = "slipway.dev/check"

// cleanup runs f with a context that cancellation of ctx does not reach.
func cleanup(ctx context.Context, f func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	f(ctx)
}
