package stages

import (
	"slices"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Preview is what an install would hand to the steps that render, as far as it is known
// before one. Nothing is started for it.
func Preview(in conductor.Inputs) (contract.Survey, error) {
	off, err := in.Release.Off(in.Config.Choices())
	if err != nil {
		return contract.Survey{}, err
	}
	w := &platformWiring{
		Graph: &conductor.Graph{Inputs: in}, disabled: off,
		site: infrastructure{found: func() contract.Infrastructure { return contract.Infrastructure{StorageClass: "standard"} }},
	}
	out := contract.Survey{Deployment: in.Config.Global.Name, Elsewhere: in.Config.Git.URL != ""}
	for _, c := range in.Release.Components {
		switch {
		case slices.Contains(off, c.Name):
		case c.Kind == platform.App:
			if out.Apps == nil {
				values := w.treeValues()
				out.Apps = &values
			}
		default:
			component := w.input(c)
			component.Rewrite = nil // what the objects name is asked for
			out.Components = append(out.Components, component)
		}
	}
	return out, nil
}
