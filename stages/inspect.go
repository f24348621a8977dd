package stages

import (
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Inspect looks for what there is beside the cluster itself.
func Inspect() conductor.Workflow {
	return conductor.Workflow{Name: "inspect", Wire: func(g *conductor.Graph) error {
		conductor.Add(g, contract.InventoryStep(), func() contract.InventoryInput { return contract.InventoryInput{SkipUnreachable: true} })
		return nil
	}}
}
