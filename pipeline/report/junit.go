package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/junit"
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
	all := junit.Report{Name: r.name(), Time: junit.Seconds(r.Elapsed())}
	var suites []junit.Suite
	for _, s := range r.Steps {
		i := slices.IndexFunc(suites, func(suite junit.Suite) bool { return suite.Name == s.Stage })
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
	for _, s := range suites {
		all.Add(s)
	}
	if r.Outcome != Succeeded && all.Failures+all.Errors == 0 {
		suite := r.suite(runSuite)
		suite.Add(r.junit())
		all.Add(suite)
	}
	return all.Write(w)
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
func (r *Run) suite(name string) junit.Suite {
	s := junit.Suite{Name: name}
	for _, p := range [][2]string{
		{"run", r.ID}, {"workflow", r.Workflow}, {"deployment", r.Deployment}, {"provider", r.Provider},
		{"platform", strings.TrimSpace(r.Platform.Name + " " + r.Platform.Version)}, {"slipway", r.Slipway},
	} {
		if p[1] != "" {
			s.Properties = append(s.Properties, junit.Property{Name: p[0], Value: p[1]})
		}
	}
	return s
}

func (s *Step) junit() junit.Case {
	c := junit.Case{Name: s.Step, Class: s.Stage, Time: junit.Seconds(s.elapsed())}
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
			c.Skipped = &junit.Problem{Message: "not started: the run was cancelled"}
			break
		}
		c.Error = s.problem()
	case pipeline.Running:
		c.Error = &junit.Problem{Message: "it has not ended"}
	case pipeline.Interrupted:
		c.Error = &junit.Problem{Message: "the run was killed while it ran"}
	case pipeline.Blocked:
		c.Skipped = &junit.Problem{Message: "blocked by " + strings.Join(s.BlockedBy, ", ")}
	default:
		c.Skipped = &junit.Problem{Message: string(s.Status)}
	}
	return c
}

// problem returns the step's error with its code and remedy.
func (s *Step) problem() *junit.Problem {
	p := &junit.Problem{Message: cmp.Or(firstLine(s.Error), string(s.Status)), Text: s.Error}
	if f := s.Fault; f != nil {
		p.Type = string(f.Code)
		p.Text = fmt.Sprintf("%s\n\n%s: %s\nremedy: %s\n", strings.TrimSpace(p.Text), p.Type, meaning(f.Class), f.Fix)
	}
	return p
}

func (a *App) junit() junit.Case {
	c := junit.Case{Name: a.Name, Class: appsSuite + "." + a.Namespace}
	if !a.OK() {
		c.Failure = &junit.Problem{
			Message: fmt.Sprintf("sync %s, health %s", a.Sync, a.Health),
			Text:    a.Cause,
		}
	}
	return c
}

// junit returns the case for the run itself.
func (r *Run) junit() junit.Case {
	c := junit.Case{Name: r.Workflow, Class: runSuite, Time: junit.Seconds(r.Elapsed())}
	c.Error = &junit.Problem{Message: cmp.Or(firstLine(r.Error), string(r.Outcome)), Text: r.Error}
	if r.Fault != nil {
		c.Error.Type = string(r.Fault.Code)
		c.Error.Text += "\nremedy: " + r.Fault.Fix
	}
	return c
}
