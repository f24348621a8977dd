package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/pipeline"
)

// The elements of a JUnit report, as Jenkins and GitLab read them.
type (
	junitSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		junitCounts
		Time   string       `xml:"time,attr"`
		Suites []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name string `xml:"name,attr"`
		junitCounts
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr"` // UTC
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitCounts struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Skipped *junitProblem `xml:"skipped"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
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
	all := junitSuites{Name: r.name(), Time: seconds(r.Elapsed())}
	for _, s := range r.Steps {
		i := slices.IndexFunc(all.Suites, func(suite junitSuite) bool { return suite.Name == s.Stage })
		if i < 0 {
			all.Suites = append(all.Suites, r.suite(s.Stage))
			i = len(all.Suites) - 1
		}
		all.Suites[i].add(s.junit(), s.elapsed())
	}
	if len(r.Apps) > 0 {
		suite := r.suite(appsSuite)
		for _, a := range r.Apps {
			suite.add(a.junit(), 0)
		}
		all.Suites = append(all.Suites, suite)
	}
	for _, s := range all.Suites {
		all.sum(s)
	}
	if r.Outcome != Succeeded && all.Failures+all.Errors == 0 {
		suite := r.suite(runSuite)
		suite.add(r.junit(), r.Elapsed())
		all.Suites = append(all.Suites, suite)
		all.sum(suite)
	}
	b, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encode junit.xml: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, b)
	return err
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
func (r *Run) suite(name string) junitSuite {
	s := junitSuite{Name: name, Time: seconds(0), Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05")}
	for _, p := range [][2]string{
		{"run", r.ID}, {"workflow", r.Workflow}, {"deployment", r.Deployment}, {"provider", r.Provider},
		{"platform", strings.TrimSpace(r.Platform.Name + " " + r.Platform.Version)}, {"slipway", r.Slipway},
	} {
		if p[1] != "" {
			s.Properties = append(s.Properties, junitProperty{p[0], p[1]})
		}
	}
	return s
}

func (s *junitSuite) add(c junitCase, took time.Duration) {
	s.Tests++
	switch {
	case c.Skipped != nil:
		s.Skipped++
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	}
	before, _ := time.ParseDuration(s.Time + "s") // written by seconds
	s.Time, c.Time = seconds(before+took), seconds(took)
	s.Cases = append(s.Cases, c)
}

func (c *junitCounts) sum(s junitSuite) {
	c.Tests, c.Failures, c.Errors = c.Tests+s.Tests, c.Failures+s.Failures, c.Errors+s.Errors
}

func (s *Step) junit() junitCase {
	c := junitCase{Name: s.Step, Class: s.Stage}
	if s.Log != "" {
		c.Out = "log: " + s.Log
	}
	switch s.Status {
	case pipeline.Succeeded, pipeline.Reused:
	case pipeline.Warned:
		c.Out = strings.TrimSpace("warning: " + s.Error + "\n" + c.Out)
	case pipeline.Failed:
		c.Failure = s.problem()
	case pipeline.Cancelled:
		if s.Started.IsZero() {
			c.Skipped = &junitProblem{Message: "not started: the run was cancelled"}
			break
		}
		c.Error = s.problem()
	case pipeline.Running:
		c.Error = &junitProblem{Message: "it has not ended"}
	case pipeline.Interrupted:
		c.Error = &junitProblem{Message: "the run was killed while it ran"}
	case pipeline.Blocked:
		c.Skipped = &junitProblem{Message: "blocked by " + strings.Join(s.BlockedBy, ", ")}
	default:
		c.Skipped = &junitProblem{Message: string(s.Status)}
	}
	return c
}

// problem returns the step's error with its code and remedy.
func (s *Step) problem() *junitProblem {
	p := &junitProblem{Message: cmp.Or(firstLine(s.Error), string(s.Status)), Text: s.Error}
	if f := s.Fault; f != nil {
		p.Type = string(f.Code)
		p.Text = fmt.Sprintf("%s\n\n%s: %s\nremedy: %s\n", strings.TrimSpace(p.Text), p.Type, meaning(f.Class), f.Fix)
	}
	return p
}

func (a *App) junit() junitCase {
	c := junitCase{Name: a.Name, Class: appsSuite + "." + a.Namespace}
	if !a.OK() {
		c.Failure = &junitProblem{
			Message: fmt.Sprintf("sync %s, health %s", a.Sync, a.Health),
			Text:    a.Cause,
		}
	}
	return c
}

// junit returns the case for the run itself.
func (r *Run) junit() junitCase {
	c := junitCase{Name: r.Workflow, Class: runSuite}
	c.Error = &junitProblem{Message: cmp.Or(firstLine(r.Error), string(r.Outcome)), Text: r.Error}
	if r.Fault != nil {
		c.Error.Type = string(r.Fault.Code)
		c.Error.Text += "\nremedy: " + r.Fault.Fix
	}
	return c
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
