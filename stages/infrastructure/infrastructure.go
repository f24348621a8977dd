// Package infrastructure is the step code of the infrastructure stage, for every
// provider: preflight, Terraform, the wait for the cluster, storage and load
// balancer verified by using them, and their removal.
package infrastructure

import (
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/lint"
	"github.com/slipway-sh/slipway/stages/step"
)

// The codes of this package's faults.
const (
	// CodePreflight: the machine, or an existing cluster, does not meet the requirements; all
	// that is missing is named.
	CodePreflight fault.Code = "INF-008"
	// CodeTerraform: `terraform init`, `plan`, `apply` or `destroy` failed.
	CodeTerraform fault.Code = "INF-003"
	// CodeOutput: the provider's Terraform root lacks an output that every provider has.
	CodeOutput fault.Code = "INF-004"
	// CodeAPI: the cluster's API or nodes did not come up in time.
	CodeAPI fault.Code = "INF-010"
	// CodeNoAnswer: an existing cluster does not answer, or rejects the credentials.
	CodeNoAnswer fault.Code = "INF-011"
	// CodeOtherCluster: the kubeconfig is not for the deployment's cluster.
	CodeOtherCluster fault.Code = "INF-013"
	// CodeStorage: the storage class does not keep data.
	CodeStorage fault.Code = "INF-020"
	// CodeLoadBalancer: the load balancer does not answer.
	CodeLoadBalancer fault.Code = "INF-021"
	// CodeRemove: something could not be removed, or is left after a destroy.
	CodeRemove fault.Code = "INF-030"
)

// Register adds the code of the stage's steps to r; build makes the tree of the apps.
func Register(r *step.Registry, build lint.BuildTree) {
	step.Register(r, contract.PreflightStep(), step.Repeatable(preflight).Planned(nil)) // a plan is no reason to look
	step.Register(r, contract.ClusterPreflightStep(), step.Repeatable(clusterPreflight))
	step.Register(r, contract.TerraformStep(), step.Verified(terraform, verifyTerraform).Planned(planTerraform))
	step.Register(r, contract.TerraformDestroyStep(), step.Once(terraformDestroy).Planned(planTerraformDestroy))
	step.Register(r, contract.ClusterStep(), step.Repeatable(cluster))
	step.Register(r, contract.OwnershipStep(), step.Repeatable(finder{build: build}.ownership))
	step.Register(r, contract.AddonsStep(), step.Repeatable(addons))
	step.Register(r, contract.StorageStep(), step.Verified(storage, verifyStorage))
	step.Register(r, contract.LoadBalancerStep(), step.Verified(loadBalancer, verifyLoadBalancer))
	step.Register(r, contract.PlatformRemoveStep(), step.Once(platformRemove).Planned(planRemove))
	step.Register(r, contract.CRDsRemoveStep(), step.Once(crdsRemove).Planned(planRemove))
	step.Register(r, contract.PlatformInventoryStep(), step.Once(platformInventory))
	step.Register(r, contract.InventoryStep(), step.Once(inventory).Planned(planRemoval))
}

const checkLabel = "slipway.sh/check"
