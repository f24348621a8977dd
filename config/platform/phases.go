package platform

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/document"
)

// Phase is a part of a run by the name under which users of the platform know it. The report
// of a run shows the phases that it has something of, with their results, in this order. Steps
// and components that no phase has are in the report all the same.
type Phase struct {
	Name       string   `json:"name" is:"text"`       // name of the phase
	Approval   bool     `json:"approval,omitempty"`   // whether the phase is consent to the run: on a terminal, with --yes or with --approve
	Steps      []string `json:"steps,omitempty"`      // Slipway's own steps, such as "preorchestrator/secrets"
	Components []string `json:"components,omitempty"` // components, each with all its steps
}

// NamesTaken is the error of a release whose components have the names of steps of Slipway's own.
func (r *Release) NamesTaken(names []string) error {
	var problems []Problem
	for _, name := range names {
		field := fmt.Sprintf("components[%d].name", slices.IndexFunc(r.Components, func(c Component) bool { return c.Name == name }))
		problems = append(problems, Problem{Field: field, Line: r.Line(field), Got: document.Quote(name) + ", which is a step of Slipway", Want: "another name"})
	}
	return invalid(problems)
}

// stepRE is the name of a step: "stage/name".
var stepRE = regexp.MustCompile(`^[a-z-]+/[a-z0-9-]+$`)

func (v *validator) phases() {
	all := v.r.Phases
	approval := -1
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
			case !stepRE.MatchString(s):
				v.Add(at, document.Shown(s), "a step as the report of a run names it: preorchestrator/secrets")
			case v.r.component(name) != nil:
				v.Add(at, document.Quote(s)+", the step of a component", name+" in components")
			default:
				once(at, s)
			}
		}
		for j, name := range p.Components {
			at := fmt.Sprintf("%s.components[%d]", field, j)
			switch c := v.r.component(name); {
			case c == nil:
				v.Add(at, document.Shown(name), componentWant)
			case !c.Installed():
				v.Add(at, document.Quote(name)+", which is an app", "a component that is none; apps are brought about in the step orchestrator/sync")
			default:
				once(at, name)
			}
		}
	}
}
