package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWriteJUnit(t *testing.T) {
	s := Suite{Name: "a", Properties: []Property{{Name: "run", Value: "r1"}}}
	s.Add(Case{Name: "good", Class: "a", Time: Seconds(1500 * time.Millisecond), Out: "said"})
	s.Add(Case{Name: "bad", Class: "a", Time: Seconds(time.Second / 3), Failure: &CaseProblem{Message: "<no>", Type: "T-1", Text: "at\nlength"}})
	s.Add(Case{Name: "worse", Class: "a", Error: &CaseProblem{Message: "killed"}})
	s.Add(Case{Name: "not", Class: "a", Skipped: &CaseProblem{Message: "blocked"}})
	var b strings.Builder
	require.NoError(t, WriteJUnit(&b, "all", 2*time.Second, s, Suite{Name: "b"}))
	require.Equal(t, `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="all" tests="4" failures="1" errors="1" time="2.000">
  <testsuite name="a" tests="4" failures="1" errors="1" skipped="1" time="1.833">
    <properties>
      <property name="run" value="r1"></property>
    </properties>
    <testcase name="good" classname="a" time="1.500">
      <system-out>said</system-out>
    </testcase>
    <testcase name="bad" classname="a" time="0.333">
      <failure message="&lt;no&gt;" type="T-1">at&#xA;length</failure>
    </testcase>
    <testcase name="worse" classname="a" time="0.000">
      <error message="killed"></error>
    </testcase>
    <testcase name="not" classname="a" time="0.000">
      <skipped message="blocked"></skipped>
    </testcase>
  </testsuite>
  <testsuite name="b" tests="0" failures="0" errors="0" skipped="0" time="0.000">
    <properties></properties>
  </testsuite>
</testsuites>
`, b.String())
}
