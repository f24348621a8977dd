package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/fault"
)

// Select limits a run to some of the steps. Its targets are "stage" (all steps
// of it) or "stage/step"; several in one field mean all of them together. The
// fields combine: a step is selected when each field that is set selects it. The
// zero value selects every step.
//
// "Before" and "after" are the order of the graph, over any number of steps, by
// needs and by Settled alike.
//
// A step that is not selected still takes part when a selected one needs it,
// directly or not, but may only verify that an earlier result of it still holds;
// see VerifyOnly. All others are Unselected.
//
// Clean-up steps (see Settled) cannot be targets. They run when one of the steps
// that they settle on takes part, so a clean-up step should settle on every step
// whose effects it undoes, not only on the last one.
type Select struct {
	// Until selects the targets and everything before them.
	Until []string
	// Only selects the targets.
	Only []string
}

// Empty reports whether every step is selected.
func (s Select) Empty() bool { return len(s.Until)+len(s.Only) == 0 }

// ErrNotVerified is returned by a step when VerifyOnly is true and it has no earlier
// result that can be reused.
var ErrNotVerified = errors.New("no earlier result of it can be reused")

// VerifyOnly reports whether a selection leaves the step out although a selected step
// needs it. The step must then change nothing, and return either an earlier result
// that it has verified or ErrNotVerified. Without an error its status is Reused. No
// hook runs around it. Every step of a graph that is run with a selection must call
// VerifyOnly, with its own context or one derived from it.
func VerifyOnly(ctx context.Context) bool {
	return ctx.Value(verifyKey{}) != nil
}

// notVerified returns the fault of a step that sel leaves out.
func notVerified(sel Select, err error) error {
	return &fault.Fault{
		Code: CodeNotVerified, Class: fault.Step, Err: err,
		Op:  fmt.Sprintf("leave it out (%s), though what is selected needs it", sel),
		Fix: "run all steps, of which those that hold are not repeated: slipway install",
	}
}

// String returns the flags of a command line that select the same.
func (s Select) String() string {
	var out []string
	for _, target := range s.Until {
		out = append(out, "--until "+fault.Quote(target))
	}
	for _, target := range s.Only {
		out = append(out, "--only "+fault.Quote(target))
	}
	return strings.Join(out, " ")
}

// part is the role of a step in a run.
type part int

const (
	selected part = iota // it runs
	verify               // it may only reuse an earlier result
	out                  // it takes no part
)

// CheckSelect returns the error with which Run refuses a selection.
func (p *Pipeline) CheckSelect(sel Select) error { return p.assignParts(sel) }

// assignParts sets the part of each node.
func (p *Pipeline) assignParts(sel Select) error {
	if sel.Empty() {
		return nil
	}
	if err := p.checkTargets(slices.Concat(sel.Until, sel.Only)); err != nil {
		return err
	}
	until, only := p.targets(sel.Until), p.targets(sel.Only)
	needed := p.before(until)
	some := false
	for i, n := range p.nodes {
		n.part = out
		if !n.cleanup && (len(sel.Until) == 0 || until[i] || needed[i]) && (len(sel.Only) == 0 || only[i]) {
			n.part, some = selected, true
		}
	}
	if !some {
		return &fault.Fault{
			Code: CodeSelection, Class: fault.Usage, Op: "select steps",
			Err: fmt.Errorf("no step is %s at once", sel),
			Fix: "name targets that have steps in common",
		}
	}
	for p.extend() {
	}
	return nil
}

// extend includes the steps that those of the run need, and the clean-up steps that settle on
// them. It reports whether there may be more.
func (p *Pipeline) extend() (changed bool) {
	for _, n := range p.nodes {
		for _, e := range n.needs {
			switch {
			case e.settled && e.to.part != out && n.part != selected:
				n.part, changed = selected, true
			case !e.settled && n.part != out && e.to.part == out:
				e.to.part, changed = verify, true
			}
		}
	}
	return changed
}

// is reports whether target selects n.
func (n *node) is(target string) bool {
	return !n.cleanup && (target == n.key.Stage || target == n.key.String())
}

// checkTargets reports all targets that match no step.
func (p *Pipeline) checkTargets(targets []string) error {
	var unknown []string
	for _, t := range targets {
		if q := fmt.Sprintf("%q", t); !slices.ContainsFunc(p.nodes, func(n *node) bool { return n.is(t) }) && !slices.Contains(unknown, q) {
			unknown = append(unknown, q)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	var stages, steps []string
	for _, n := range p.nodes {
		if n.cleanup {
			continue
		}
		if !slices.Contains(stages, n.key.Stage) {
			stages = append(stages, n.key.Stage)
		}
		steps = append(steps, n.key.String())
	}
	return &fault.Fault{
		Code: CodeSelection, Class: fault.Usage, Op: "select steps",
		Err: fmt.Errorf("no stage or step is named %s; the stages are %s; the steps are %s",
			strings.Join(unknown, ", "), strings.Join(stages, ", "), strings.Join(steps, ", ")),
		Fix: "name a stage or a step that the error lists",
	}
}

// targets marks the nodes that targets select, by index.
func (p *Pipeline) targets(targets []string) []bool {
	marks := make([]bool, len(p.nodes))
	for i, n := range p.nodes {
		marks[i] = slices.ContainsFunc(targets, n.is)
	}
	return marks
}

// before marks the nodes that come before a marked one.
func (p *Pipeline) before(marked []bool) []bool {
	marks := make([]bool, len(p.nodes))
	for i, n := range slices.Backward(p.nodes) { // a node comes after all that it needs
		if marked[i] || marks[i] {
			for _, e := range n.needs {
				marks[e.to.index] = true
			}
		}
	}
	return marks
}
