package platform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/document"
)

// Phase is a part of a run by the name under which users of the platform know it. The report
// of a run shows the phases that it has something of, with their results, in this order. Steps
// and components that no phase has are in the report all the same.
type Phase struct {
	Name       string   `json:"name"`                 // name of the phase
	Approval   bool     `json:"approval,omitempty"`   // whether the phase is consent to the run: on a terminal, with --yes or with --approve
	Steps      []string `json:"steps,omitempty"`      // Slipway's own steps, such as "preorchestrator/secrets"
	Components []string `json:"components,omitempty"` // components, each with all its steps
}

// OwnSteps are the steps that runs of the release may have besides those of its components,
// "stage/step": of an install, an upgrade, a rollback or a destroy.
func (r *Release) OwnSteps() []string {
	out := []string{
		"infrastructure/preflight", "infrastructure/node", "infrastructure/verify", "infrastructure/cluster-preflight", "infrastructure/terraform",
		"infrastructure/cluster", "infrastructure/ownership", "infrastructure/local-addons", "infrastructure/storage", "infrastructure/loadbalancer",
		"infrastructure/node-remove", "infrastructure/platform-remove", "infrastructure/definitions-remove", "infrastructure/platform-inventory",
		"infrastructure/terraform-destroy", "infrastructure/inventory",
	}
	for _, d := range r.Data {
		out = append(out, "preorchestrator/backup-"+d.Name)
	}
	return append(out,
		"preorchestrator/backup", "preorchestrator/migrate-before", "preorchestrator/restore",
		"preorchestrator/namespaces", "preorchestrator/secrets", "preorchestrator/tls", "preorchestrator/configmaps", "preorchestrator/requires",
		"preorchestrator/git", "preorchestrator/reconcile", "preorchestrator/repository",
		"orchestrator/publish", "orchestrator/projects", "orchestrator/sync", "orchestrator/migrate-after", "orchestrator/data-check", "orchestrator/prune",
		"postorchestrator/access",
	)
}

// phases checks the phases.
func (v *validator) phases() {
	all := v.r.Phases
	v.unique("phases", "name", len(all), func(i int) string { return all[i].Name })
	known, approval := v.r.OwnSteps(), -1
	first := map[string]string{} // where a step or a component is
	once := func(at, name string) {
		if other, ok := first[name]; ok {
			v.Add(at, document.Quote(name)+" again", "it in one phase; "+other+" is the same")
			return
		}
		first[name] = at
	}
	for i, p := range all {
		field := fmt.Sprintf("phases[%d]", i)
		if strings.TrimSpace(p.Name) == "" {
			v.Add(field+".name", document.Shown(p.Name), "a name")
		}
		switch {
		case p.Approval && approval >= 0:
			v.Add(field+".approval", "true again", fmt.Sprintf("it in one phase; phases[%d] has it", approval))
		case p.Approval && len(p.Steps)+len(p.Components) > 0:
			v.Add(field+".approval", "true besides steps or components", "a phase of its own for it")
		case p.Approval:
			approval = i
		case len(p.Steps)+len(p.Components) == 0:
			v.Add(field+".steps", "nothing", "at least one step or component, or approval")
		}
		for j, s := range p.Steps {
			at := fmt.Sprintf("%s.steps[%d]", field, j)
			_, name, _ := strings.Cut(s, "/")
			switch {
			case slices.Contains(known, s):
				once(at, s)
			case v.r.component(name) != nil:
				v.Add(at, document.Quote(s)+", the step of a component", name+" in components")
			default:
				v.Add(at, document.Shown(s), document.OneOf(known...))
			}
		}
		for j, name := range p.Components {
			at := fmt.Sprintf("%s.components[%d]", field, j)
			switch c := v.r.component(name); {
			case c == nil:
				v.Add(at, document.Shown(name), "the name of a component in this file")
			case !c.Installed():
				v.Add(at, document.Quote(name)+", which is an app", "a component that is none; apps are brought about in the step orchestrator/sync")
			default:
				once(at, name)
			}
		}
	}
}
