package conductor

import (
	"slices"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// PhaseNames are those of phases that a run of these steps would have something of.
func PhaseNames(phases []report.Phase, nodes []pipeline.Node) []string {
	var run report.Run
	run.Plan(nodes)
	run.Divide(phases)
	var out []string
	for _, p := range run.Phases {
		if p.Status != "" {
			out = append(out, p.Name)
		}
	}
	return out
}

// PhasesOf are the phases of a release, with the steps that their components have in a graph.
func PhasesOf(r *platform.Release, nodes []pipeline.Node) []report.Phase {
	var out []report.Phase
	for _, p := range r.Phases {
		phase := report.Phase{Name: p.Name, Approval: p.Approval, Steps: slices.Clone(p.Steps)}
		for _, n := range nodes {
			if contract.OfComponents(n.Stage) && slices.Contains(p.Components, n.Name) {
				phase.Steps = append(phase.Steps, n.String())
			}
		}
		out = append(out, phase)
	}
	return out
}
