// Package junit writes test results for CI systems: a root testsuites with suites, as Jenkins
// and GitLab read them. It counts and adds up.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

// Report is a file. Suites are added when they are complete.
type Report struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	Counts
	Time   Seconds `xml:"time,attr"`
	Suites []Suite `xml:"testsuite"`
}

// Suite is a list of cases.
type Suite struct {
	Name string `xml:"name,attr"`
	Counts
	Skipped    int        `xml:"skipped,attr"`
	Time       Seconds    `xml:"time,attr"` // the sum of its cases'
	Properties []Property `xml:"properties>property"`
	Cases      []Case     `xml:"testcase"`
}

// Counts are how many cases there are, and how many of them went wrong.
type Counts struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
}

// Property says something about a suite.
type Property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// Case is one test. One of the problems at most is set; without one it passed.
type Case struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    Seconds  `xml:"time,attr"`
	Skipped *Problem `xml:"skipped"`
	Failure *Problem `xml:"failure"`
	Error   *Problem `xml:"error"`
	Out     string   `xml:"system-out,omitempty"`
}

// Problem is why a case did not pass: a line, and the whole text.
type Problem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// Seconds is a duration, written to the millisecond.
type Seconds time.Duration

// MarshalText implements encoding.TextMarshaler.
func (s Seconds) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%.3f", time.Duration(s).Seconds()), nil
}

// Add adds a case.
func (s *Suite) Add(c Case) {
	s.Tests++
	switch {
	case c.Skipped != nil:
		s.Skipped++
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	}
	s.Time += c.Time
	s.Cases = append(s.Cases, c)
}

// Add adds a suite.
func (r *Report) Add(s Suite) {
	r.Tests, r.Failures, r.Errors = r.Tests+s.Tests, r.Failures+s.Failures, r.Errors+s.Errors
	r.Suites = append(r.Suites, s)
}

// Write writes the file.
func (r *Report) Write(w io.Writer) error {
	text, err := xml.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode junit.xml: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}
