package stages

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// The codes of the faults of a run of tests.
const (
	// CodeTests: tests have failed.
	CodeTests fault.Code = "TST-001"
	// CodeNoTests: the release has no such suite, or nothing in it for what is installed.
	CodeNoTests fault.Code = "TST-008"
)

// Suite says which tests run. The zero value: all, and everything that is done with workloads.
type Suite struct {
	Name      string // of tests, or one of platform.ReservedSuites
	Component string // with the tests of which; takes the place of Name
}

// Test runs tests of the installed release, or does something with its workloads.
func Test(s Suite) Workflow {
	return Workflow{
		Name: config.Test, Tries: true,
		Named:    []string{contract.StageTest, contract.StageAppsDeploy, contract.StageAppsCheck, contract.StageAppsDestroy},
		Wire:     func(g *Graph) error { return wireTest(g, s) },
		Conclude: func(err error) error { return s.conclude(err) },
	}
}

// tried wires what is done with a test or a workload.
type tried func(g *Graph, begin pipeline.Dep) pipeline.Dep

func try[Out any](name string, files platform.Component, step contract.Step[contract.TestInput, Out]) tried {
	return func(g *Graph, begin pipeline.Dep) pipeline.Dep {
		return Add(g, step, func() contract.TestInput {
			in := contract.TestInput{Name: name, Images: map[string]string{}, Rewrite: g.Rewrite, PullSecret: g.Environment.Account != ""}
			for _, image := range files.ImageNames() {
				in.Images[image] = g.Images[image]
			}
			return in
		}, begin)
	}
}

func wireTest(g *Graph, s Suite) error {
	if g.Config.Git.URL != "" {
		g.Release = g.Release.ForRepository()
	}
	off, err := g.Release.Off(g.Config.Choices())
	if err != nil {
		return err
	}
	all := append(tests(g.Release, s, off), workloads(g.Release, s, off)...)
	if len(all) == 0 && s != (Suite{}) {
		return s.none(g.Release, off)
	}
	var up []pipeline.Dep
	in := contract.LeftoversInput{Platform: g.Release.Name, Version: g.Release.Version}
	if g.Environment.OwnsNodes() {
		up = append(up, g.Action(contract.NodeKey()))
		in.Pods = contract.NodePods
	}
	begin := Add(g, contract.LeftoversStep(), func() contract.LeftoversInput { return in }, up...)
	last := []pipeline.Dep{begin}
	for _, wire := range all {
		last = append(last, pipeline.Settled(wire(g, begin)))
	}
	// Also where the run was interrupted: none of what the tests have made stays.
	Add(g, contract.CleanUpStep(), func() contract.LeftoversInput { return contract.LeftoversInput{} }, last...)
	return nil
}

func tests(r *platform.Release, s Suite, off []string) []tried {
	var out []tried
	for _, t := range r.TestsOn(off) {
		switch {
		case s.Component != "" && t.Component != s.Component:
			continue
		case s.Component == "" && s.Name != "" && !slices.Contains(t.Suites, s.Name):
			continue
		}
		out = append(out, try(t.Name, t.Files(), contract.TestStep().ForEach(t.Name, time.Duration(t.Deadline))))
	}
	return out
}

func workloads(r *platform.Release, s Suite, off []string) []tried {
	if s.Component != "" {
		return nil
	}
	var out []tried
	for _, w := range r.WorkloadsOn(off) {
		deadline := time.Duration(w.Deadline)
		add := func(suite string, step tried) {
			if s.Name == "" || s.Name == suite {
				out = append(out, step)
			}
		}
		add(platform.DeployApps, try(w.Name, w.Files(), contract.AppsDeployStep().ForEach(w.Name, deadline)))
		add(platform.CheckApps, try(w.Name, w.Files(), contract.AppsCheckStep().ForEach(w.Name, deadline)))
		add(platform.DestroyApps, try(w.Name, w.Files(), contract.AppsDestroyStep().ForEach(w.Name, deadline)))
	}
	return out
}

func (s Suite) none(r *platform.Release, off []string) error {
	what, fix := "suite "+s.Name, "name another one: "
	var known []string
	switch {
	case s.Component != "":
		what = "component " + s.Component
		for _, t := range r.TestsOn(off) {
			if t.Component != "" && !slices.Contains(known, t.Component) {
				known = append(known, t.Component)
			}
		}
		fix += "slipway test --component NAME"
	default:
		for _, name := range r.Suites() {
			if len(tests(r, Suite{Name: name}, off)) > 0 {
				known = append(known, name)
			}
		}
		if len(r.WorkloadsOn(off)) > 0 {
			known = append(known, platform.ReservedSuites()...)
		}
		fix += "slipway test SUITE"
	}
	return &fault.Fault{
		Code: CodeNoTests, Class: fault.Usage, Op: "run the tests of " + what,
		Err: fmt.Errorf("%s %s has none for what is installed; there are tests of: %s", r.Name, r.Version, cmp.Or(strings.Join(known, ", "), "nothing")),
		Fix: fix,
	}
}

// conclude makes one fault of failed tests, if nothing else went wrong.
func (s Suite) conclude(err error) error {
	var failed []string
	var only func(err error) bool
	only = func(err error) bool {
		if all, ok := err.(interface{ Unwrap() []error }); ok {
			return !slices.ContainsFunc(all.Unwrap(), func(e error) bool { return !only(e) })
		}
		step, ok := errors.AsType[*pipeline.StepError](err)
		if !ok || !contract.OfTest(pipeline.Key{Stage: step.Stage, Name: step.Step}) {
			return false
		}
		failed = append(failed, step.Step)
		return !slices.Contains([]fault.Class{fault.Bug, fault.Locked, fault.Cancelled}, fault.ClassOf(err))
	}
	if err == nil || !only(err) {
		return err
	}
	what, of := "tests", fault.Quote(s.Name)
	if slices.Contains(platform.ReservedSuites(), s.Name) {
		what = "workloads"
	} else if s.Component != "" {
		of = "--component " + fault.Quote(s.Component)
	}
	return &fault.Fault{
		Code: CodeTests, Class: fault.Step, Op: "run the tests",
		Err: fmt.Errorf("%d of the %s failed: %s", len(failed), what, strings.Join(failed, ", ")),
		Fix: "correct the cause that is listed for each above and in its log (slipway report), then run them again: slipway test " + of,
	}
}
