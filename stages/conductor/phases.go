package conductor

import (
	"slices"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// phasesOf are the phases of a release, with the steps that their components have in a graph.
func phasesOf(r *platform.Release, nodes []pipeline.Node) []report.Phase {
	var out []report.Phase
	for _, p := range r.Phases {
		phase := report.Phase{Name: p.Name, Approval: p.Approval, Steps: slices.Clone(p.Steps)}
		for _, n := range nodes {
			stage := n.Stage == contract.StagePreOrchestrator || n.Stage == contract.StageOrchestrator
			if stage && slices.Contains(p.Components, n.Name) {
				phase.Steps = append(phase.Steps, n.String())
			}
		}
		out = append(out, phase)
	}
	return out
}
