package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

// junitFile is a root testsuites with suites, as Jenkins and GitLab read them.
type junitFile struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	counts
	Time   Seconds `xml:"time,attr"`
	Suites []Suite `xml:"testsuite"`
}

// Suite is a list of test cases for CI systems.
type Suite struct {
	Name string `xml:"name,attr"`
	counts
	Skipped    int        `xml:"skipped,attr"`
	Time       Seconds    `xml:"time,attr"` // the sum of its cases'
	Properties []Property `xml:"properties>property"`
	Cases      []Case     `xml:"testcase"`
}

// counts are how many cases there are, and how many of them went wrong.
type counts struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
}

// Property says something about a suite.
type Property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// Case is one test case. One of the problems at most is set; without one it passed.
type Case struct {
	Name    string       `xml:"name,attr"`
	Class   string       `xml:"classname,attr"`
	Time    Seconds      `xml:"time,attr"`
	Skipped *CaseProblem `xml:"skipped"`
	Failure *CaseProblem `xml:"failure"`
	Error   *CaseProblem `xml:"error"`
	Out     string       `xml:"system-out,omitempty"`
}

// CaseProblem is why a case did not pass: a line, and the whole text.
type CaseProblem struct {
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

// WriteJUnit writes a file with suites, whose cases it adds up.
func WriteJUnit(w io.Writer, name string, took time.Duration, suites ...Suite) error {
	file := junitFile{Name: name, Time: Seconds(took), Suites: suites}
	for _, s := range suites {
		file.Tests, file.Failures, file.Errors = file.Tests+s.Tests, file.Failures+s.Failures, file.Errors+s.Errors
	}
	text, err := xml.MarshalIndent(file, "", "  ")
	if err != nil {
		return fmt.Errorf("encode junit.xml: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}
