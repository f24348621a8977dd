package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/pipeline"
)

// appsSuite and runSuite are the suites beside those of the stages.
const (
	appsSuite = "applications"
	runSuite  = "run"
)

// JUnit writes the record for CI systems: a suite for each stage with a case for each
// step, and a suite for the applications. Steps that did not run are skipped. A run
// that failed outside its steps is a suite of its own, so that the file has a failure
// or an error whenever the run did not succeed.
func (r *Run) JUnit(w io.Writer) error {
	r, err := r.cleaned()
	if err != nil {
		return err
	}
	var suites []Suite
	for _, s := range r.Steps {
		i := slices.IndexFunc(suites, func(suite Suite) bool { return suite.Name == s.Stage })
		if i < 0 {
			suites = append(suites, r.suite(s.Stage))
			i = len(suites) - 1
		}
		suites[i].Add(s.junit())
	}
	if len(r.Apps) > 0 {
		suite := r.suite(appsSuite)
		for _, a := range r.Apps {
			suite.Add(a.junit())
		}
		suites = append(suites, suite)
	}
	wrong := slices.ContainsFunc(suites, func(s Suite) bool { return s.Failures+s.Errors > 0 })
	if r.Outcome != Succeeded && !wrong {
		suite := r.suite(runSuite)
		suite.Add(r.junit())
		suites = append(suites, suite)
	}
	return WriteJUnit(w, r.name(), r.Elapsed(), suites...)
}

// name describes the run in one line: "install blue (reference 1.0.0)".
func (r *Run) name() string {
	name := r.Workflow + " " + r.Deployment
	if r.Platform.Name != "" {
		name += fmt.Sprintf(" (%s %s)", r.Platform.Name, r.Platform.Version)
	}
	return name
}

// suite returns an empty suite with the properties that all suites have.
func (r *Run) suite(name string) Suite {
	s := Suite{Name: name}
	for _, p := range [][2]string{
		{"run", r.ID}, {"workflow", r.Workflow}, {"deployment", r.Deployment}, {"provider", r.Provider},
		{"platform", strings.TrimSpace(r.Platform.Name + " " + r.Platform.Version)}, {"slipway", r.Slipway},
	} {
		if p[1] != "" {
			s.Properties = append(s.Properties, Property{Name: p[0], Value: p[1]})
		}
	}
	return s
}

func (s *Step) junit() Case {
	c := Case{Name: s.Step, Class: s.Stage, Time: Seconds(s.elapsed())}
	if len(s.Counts) > 0 {
		c.Out = "counted: " + s.Counted() + "\n"
	}
	if s.Log != "" {
		c.Out += "log: " + s.Log
	}
	switch s.Status {
	case pipeline.Succeeded, pipeline.Reused:
	case pipeline.Warned:
		c.Out = strings.TrimSpace("warning: " + s.Error + "\n" + c.Out)
	case pipeline.Failed:
		c.Failure = s.problem()
	case pipeline.Cancelled:
		if s.Started.IsZero() {
			c.Skipped = &CaseProblem{Message: "not started: the run was cancelled"}
			break
		}
		c.Error = s.problem()
	case pipeline.Running:
		c.Error = &CaseProblem{Message: "it has not ended"}
	case pipeline.Interrupted:
		c.Error = &CaseProblem{Message: "the run was killed while it ran"}
	case pipeline.Blocked:
		c.Skipped = &CaseProblem{Message: "blocked by " + strings.Join(s.BlockedBy, ", ")}
	default:
		c.Skipped = &CaseProblem{Message: string(s.Status)}
	}
	return c
}

// problem returns the step's error with its code and remedy.
func (s *Step) problem() *CaseProblem {
	p := &CaseProblem{Message: cmp.Or(firstLine(s.Error), string(s.Status)), Text: s.Error}
	if f := s.Fault; f != nil {
		p.Type = string(f.Code)
		p.Text = fmt.Sprintf("%s\n\n%s: %s\nremedy: %s\n", strings.TrimSpace(p.Text), p.Type, meaning(f.Class), f.Fix)
	}
	return p
}

func (a *App) junit() Case {
	c := Case{Name: a.Name, Class: appsSuite + "." + a.Namespace}
	if !a.OK() {
		c.Failure = &CaseProblem{
			Message: fmt.Sprintf("sync %s, health %s", a.Sync, a.Health),
			Text:    a.Cause,
		}
	}
	return c
}

// junit returns the case for the run itself.
func (r *Run) junit() Case {
	c := Case{Name: r.Workflow, Class: runSuite, Time: Seconds(r.Elapsed())}
	c.Error = &CaseProblem{Message: cmp.Or(firstLine(r.Error), string(r.Outcome)), Text: r.Error}
	if r.Fault != nil {
		c.Error.Type = string(r.Fault.Code)
		c.Error.Text += "\nremedy: " + r.Fault.Fix
	}
	return c
}
