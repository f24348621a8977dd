package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/fault"
)

// CheckUntil returns the error with which Run rejects the targets of Options.Until.
func (p *Pipeline) CheckUntil(targets []string) error { return p.limit(targets) }

// limit leaves out the steps that are neither targets nor before one, by needs or by Settled, and
// no clean-up steps of those.
func (p *Pipeline) limit(targets []string) error {
	if len(targets) == 0 {
		return nil
	}
	if err := p.checkTargets(targets); err != nil {
		return err
	}
	for _, n := range p.nodes {
		n.out = !slices.ContainsFunc(targets, n.is)
	}
	for _, n := range slices.Backward(p.nodes) { // a node comes after all that it needs
		for _, e := range n.needs {
			e.to.out = e.to.out && n.out
		}
	}
	for p.extend() {
	}
	return nil
}

// extend includes the clean-up steps that settle on steps of the run, and what those need. It
// reports whether there may be more.
func (p *Pipeline) extend() (changed bool) {
	for _, n := range p.nodes {
		for _, e := range n.needs {
			switch {
			case e.settled && n.out && !e.to.out:
				n.out, changed = false, true
			case !e.settled && !n.out && e.to.out:
				e.to.out, changed = false, true
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
