// Package infrastructure is the step code of the infrastructure stage, for every
// provider: preflight, Terraform, the wait for the cluster, storage and load
// balancer verified by using them, and their removal.
package infrastructure

import (
	"context"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// Stage is the stage's name.
const Stage = "infrastructure"

// The codes of this package's faults.
const (
	// CodePreflight: the machine does not meet the requirements.
	// Remedy: do what each listed problem says.
	CodePreflight fault.Code = "INF-008"
	// CodeInit: `terraform init` failed.
	// Remedy: look at the step's log: `slipway report`
	CodeInit fault.Code = "INF-001"
	// CodePlan: `terraform plan` failed.
	// Remedy: look at the step's log: `slipway report`
	CodePlan fault.Code = "INF-002"
	// CodeApply: `terraform apply` failed.
	// Remedy: look at the step's log (`slipway report`), then `slipway install`
	// again.
	CodeApply fault.Code = "INF-003"
	// CodeOutput: the provider's Terraform root does not give the outputs that
	// every provider gives.
	// Remedy: correct the root.
	CodeOutput fault.Code = "INF-004"
	// CodeStateLocked: somebody else holds the Terraform state.
	// Remedy: wait for the other run to end.
	CodeStateLocked fault.Code = "INF-005"
	// CodeDestroy: `terraform destroy` failed.
	// Remedy: look at the step's log (`slipway report`), then `slipway destroy`
	// again.
	CodeDestroy fault.Code = "INF-006"
	// CodeState: the Terraform state cannot be read.
	// Remedy: restore it from the backup beside it.
	CodeState fault.Code = "INF-007"
	// CodeLeftBehind: the state volume has a Terraform state, and the bucket that
	// the configuration names now has none.
	// Remedy: copy it there (docs/state.md), or give the `state.url` that the
	// deployment was installed with.
	CodeLeftBehind fault.Code = "INF-009"
	// CodeAPI: the cluster's API or nodes did not come up in time.
	// Remedy: look at the last lines of the cluster's node.
	// Class: timeout, step or cancelled.
	CodeAPI fault.Code = "INF-010"
	// CodeStorage: the storage class does not keep data.
	// Remedy: look at the storage provisioner's log.
	// Class: step, timeout or cancelled.
	CodeStorage fault.Code = "INF-020"
	// CodeLoadBalancer: the load balancer does not answer.
	// Remedy: look at the Service that the error names.
	// Class: step, timeout or cancelled.
	CodeLoadBalancer fault.Code = "INF-021"
	// CodeRemove: something could not be removed.
	// Remedy: `slipway destroy` again.
	// Class: step, timeout or cancelled.
	CodeRemove fault.Code = "INF-030"
	// CodeNotEmpty: something is left after a destroy.
	// Remedy: `slipway destroy` again.
	CodeNotEmpty fault.Code = "INF-031"
)

// Register adds the stage's steps to r:
//
//	infrastructure/preflight          conductor.PreflightInput → conductor.Preflight
//	infrastructure/terraform          conductor.TerraformInput → conductor.Infrastructure
//	infrastructure/cluster            conductor.ClusterInput   → conductor.Cluster
//	infrastructure/storage            conductor.ClusterInput   → conductor.StorageCheck
//	infrastructure/loadbalancer       conductor.ClusterInput   → conductor.LoadBalancerCheck
//	infrastructure/platform-remove    conductor.RemoveInput    → conductor.Removed
//	infrastructure/platform-inventory conductor.InventoryInput → conductor.Inventory
//	infrastructure/inventory          conductor.InventoryInput → conductor.Inventory
//	infrastructure/terraform-destroy  conductor.TerraformInput → conductor.TerraformDestroyed
func Register(r *step.Registry) {
	tools := toolchain{lockTimeout: lockTimeout}
	step.Register(r, Stage, "preflight", step.Step[contract.PreflightInput, contract.Preflight]{
		Run: tools.preflight, Verify: verifyPreflight,
	})
	step.Register(r, Stage, "terraform", step.Step[contract.TerraformInput, contract.Infrastructure]{
		Run: tools.terraform, Verify: verifyTerraform,
	})
	step.Register(r, Stage, "terraform-destroy", step.Step[contract.TerraformInput, contract.TerraformDestroyed]{Run: tools.terraformDestroy})
	step.Register(r, Stage, "cluster", step.Step[contract.ClusterInput, contract.Cluster]{Run: cluster, Repeat: true})
	step.Register(r, Stage, "storage", step.Step[contract.ClusterInput, contract.StorageCheck]{Run: storage, Verify: verifyStorage})
	step.Register(r, Stage, "loadbalancer", step.Step[contract.ClusterInput, contract.LoadBalancerCheck]{
		Run: loadBalancer, Verify: verifyLoadBalancer,
	})
	step.Register(r, Stage, "platform-remove", step.Step[contract.RemoveInput, contract.Removed]{Run: platformRemove})
	step.Register(r, Stage, "platform-inventory", step.Step[contract.InventoryInput, contract.Inventory]{Run: platformInventory})
	step.Register(r, Stage, "inventory", step.Step[contract.InventoryInput, contract.Inventory]{Run: inventory})
}

// toolchain is where the tools are.
type toolchain struct {
	dir         string // empty: where the step's environment says
	lockTimeout string // as Terraform reads it
}

func (t toolchain) path(tool string) string { return t.dir + "/" + tool }

// of is t for a step.
func (t toolchain) of(env *step.Env) toolchain {
	if t.dir == "" {
		t.dir = env.ToolsDir
	}
	return t
}

// checkLabel tells which check an object belongs to.
const checkLabel = "slipway.dev/check"

// cleanup runs f with a context that cancellation of ctx does not reach.
func cleanup(ctx context.Context, f func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	f(ctx)
}
