package stages

import (
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Destroy removes the deployment in the reverse order of an install and proves that nothing is left; a
// missing deployment is no error. It removes Slipway's cluster as a whole, and otherwise first takes the
// platform out of the cluster, object by object.
func Destroy() Workflow {
	return Workflow{Name: config.Destroy, Wire: wireDestroy, Removes: true}
}

func wireDestroy(g *Graph) error {
	own := g.Environment.OwnsNodes()
	var gone pipeline.Dep
	if own {
		gone = g.Action(contract.NodeRemoveKey())
	} else {
		input := func() contract.RemoveInput { return contract.RemoveInput{CRDs: g.CRDs} }
		platform := Add(g, contract.PlatformRemoveStep(), input)
		remove := Add(g, contract.CRDsRemoveStep(), input, platform)
		gone = Add(g, contract.PlatformInventoryStep(),
			func() contract.InventoryInput {
				return contract.InventoryInput{MustBeEmpty: true, CRDs: g.CRDs}
			}, remove)
	}
	terraform := Add(g, contract.TerraformDestroyStep(), func() contract.TerraformInput { return g.Environment.Terraform }, gone)
	// The last look is at what would outlive the deployment, such as an existing cluster.
	last := contract.InventoryStep()
	last.Offline = !g.Environment.Existed()
	Add(g, last, func() contract.InventoryInput {
		return contract.InventoryInput{MustBeEmpty: true, SkipUnreachable: true, Gone: own, CRDs: g.CRDs}
	}, terraform)
	return nil
}
