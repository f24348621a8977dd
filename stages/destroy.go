package stages

import (
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Destroy removes the deployment and proves that nothing is left; one that is not
// there is no error. It is the reverse order of an install.
//
// A cluster that Slipway runs itself goes as a whole, with everything in it. Of
// any other one, the platform is taken out first, object by object.
func Destroy() conductor.Workflow {
	return conductor.Workflow{Name: config.Destroy, Wire: wireDestroy, Removes: true}
}

func wireDestroy(g *conductor.Graph) error {
	own := g.Site.OwnsNodes()
	var gone pipeline.Dep
	if own {
		gone = g.Action(contract.NodeRemoveKey())
	} else {
		input := func() contract.RemoveInput { return contract.RemoveInput{Definitions: g.Definitions} }
		platform := conductor.Add(g, contract.PlatformRemoveStep(), input)
		remove := conductor.Add(g, contract.DefinitionsRemoveStep(), input, platform)
		gone = conductor.Add(g, contract.PlatformInventoryStep(),
			func() contract.InventoryInput {
				return contract.InventoryInput{MustBeEmpty: true, Definitions: g.Definitions}
			}, remove)
	}
	terraform := conductor.Add(g, contract.TerraformDestroyStep(), func() contract.TerraformInput { return g.Site.Terraform }, gone)
	// The last look: at what would outlive the deployment, which includes a cluster that was
	// there before it.
	last := contract.InventoryStep()
	last.Offline = !g.Site.Existed()
	conductor.Add(g, last, func() contract.InventoryInput {
		return contract.InventoryInput{MustBeEmpty: true, SkipUnreachable: true, Gone: own, Definitions: g.Definitions}
	}, terraform)
	return nil
}
