package stages

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Workflow is what can be done with a deployment.
type Workflow struct {
	Name string // config.Install, …
	// Wire adds the steps, in the order in which a person would name them. Steps that
	// do not need each other run in parallel.
	Wire func(*Graph) error
	// Named are the stages with steps that are named for what is in a release.
	Named []string
	// Removes says that the deployment is gone after a success: its state is deleted,
	// but for the records of its runs.
	Removes bool
	// Tries says that the workflow only tries what is installed: the runtime state stays as it is.
	Tries bool
	// Conclude returns the error of the run, from that of its graph; nil: that one.
	Conclude func(error) error
}

// Findings are what steps found out, for the run's record and the runtime state.
type Findings struct {
	Record *report.Run
	State  *contract.RuntimeState
}

// Graph is a workflow being wired.
type Graph struct {
	contract.Inputs
	Pipeline pipeline.Pipeline // what is wired so far

	specs   map[pipeline.Key]contract.Spec // of the steps
	taken   []string                       // components whose step would have the key of another one
	collect []func(*Findings)              // after the run
	runner  Runner
	actions map[pipeline.Key]func(context.Context) error
}

// Runner runs the steps of a graph.
type Runner interface {
	// Run decodes the output of the step into out.
	Run(ctx context.Context, s contract.Spec, in, out any) (contract.Result, error)
}

// Wire wires w. Steps run with r; an action that is not among actions is nothing.
func Wire(w Workflow, in contract.Inputs, r Runner, actions map[pipeline.Key]func(context.Context) error) (*Graph, error) {
	g := &Graph{Inputs: in, specs: map[pipeline.Key]contract.Spec{}, runner: r, actions: actions}
	if err := w.Wire(g); err != nil {
		return nil, err
	}
	if names := g.namesTaken(); len(names) > 0 {
		return nil, g.Release.NamesTaken(names)
	}
	return g, nil
}

// namesTaken are the components, sorted, that are named like a step of Slipway's own in the stages
// that have steps of components.
func (g *Graph) namesTaken() []string {
	names := g.taken
	for key, s := range g.specs {
		own := s.Code != contract.ComponentStep().Key && s.Code != contract.HandoverStep().Key
		if own && contract.OfComponents(key.Stage) && g.component(key.Name) {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// component reports whether the release has a component of that name with a step of its own.
func (g *Graph) component(name string) bool {
	if g.Release == nil {
		return false
	}
	c, ok := g.Release.Component(name)
	return ok && c.Installed()
}

// Nodes are the nodes of a workflow, in the order of its wiring. Nothing is started.
func Nodes(w Workflow, in contract.Inputs) ([]pipeline.Node, error) {
	g, err := Wire(w, in, nil, nil)
	if err != nil {
		return nil, err
	}
	return g.Pipeline.Graph(), nil
}

// Add adds a step. input is called once everything that the step needs has succeeded. A graph in
// which a component has the name of another step is none: Wire says so.
func Add[In, Out any](g *Graph, d contract.Step[In, Out], input func() In, needs ...pipeline.Dep) *pipeline.Step[Out] {
	if _, taken := g.specs[d.Key]; taken && g.component(d.Name) {
		g.taken = append(g.taken, d.Name)
		d.Name = fmt.Sprintf("%s %d", d.Name, len(g.taken)) // the pipeline takes each once
	}
	g.specs[d.Key] = d.Spec
	var s *pipeline.Step[Out]
	s = pipeline.Add(&g.Pipeline, d.Key, func(ctx context.Context) (Out, error) {
		var out Out
		ctx, end := Span(ctx, d.Key)
		result, err := g.runner.Run(ctx, d.Spec, input(), &out)
		end(result.Status, err)
		s.Describe(pipeline.Detail{
			Reused: result.Status == contract.Reused,
			Log:    path.Join("steps", d.Stage+"."+d.Name, "log.txt"),
			Counts: result.Counts,
		})
		return out, err
	}, needs...)
	return s
}

// Action adds what the conductor itself does under this name: contract.NodeKey,
// contract.NodeRemoveKey or the key of contract.CheckEarlierSpec.
func (g *Graph) Action(key pipeline.Key, needs ...pipeline.Dep) pipeline.Dep {
	return pipeline.Add(&g.Pipeline, key, func(ctx context.Context) (struct{}, error) {
		act, ok := g.actions[key]
		if !ok {
			return struct{}{}, nil
		}
		return struct{}{}, act(ctx)
	}, needs...)
}

// Collect calls to with the output of s after the run, if s succeeded.
func Collect[Out any](g *Graph, s *pipeline.Step[Out], to func(Out, *Findings)) {
	g.collect = append(g.collect, func(f *Findings) {
		if r, ok := s.Result(); ok && r.Status.OK() {
			to(s.Value(), f)
		}
	})
}

// Found adds the findings of the steps that have succeeded to f.
func (g *Graph) Found(f *Findings) {
	for _, collect := range g.collect {
		collect(f)
	}
}

// Unchanged reports whether a run with these results has done nothing: every step reused an
// earlier result, and what the conductor itself does changes nothing then.
func (g *Graph) Unchanged(results []pipeline.Result) bool {
	reused := 0
	for _, r := range results {
		_, step := g.specs[r.Key]
		switch {
		case r.Status == pipeline.Reused:
			reused++
		case step && r.Status != pipeline.Unselected:
			return false
		}
	}
	return reused > 0
}

// Online reports whether a node of the graph works on the cluster.
func (g *Graph) Online(key pipeline.Key) bool {
	s, ok := g.specs[key]
	return ok && !s.Offline
}

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
