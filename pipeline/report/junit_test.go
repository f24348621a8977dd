package report_test

import (
	"encoding/xml"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// result is JUnit's format as a consumer reads it.
type result struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Suites   []struct {
		Name     string  `xml:"name,attr"`
		Tests    int     `xml:"tests,attr"`
		Failures int     `xml:"failures,attr"`
		Errors   int     `xml:"errors,attr"`
		Skipped  int     `xml:"skipped,attr"`
		Time     float64 `xml:"time,attr"`
		Cases    []struct {
			Name    string   `xml:"name,attr"`
			Class   string   `xml:"classname,attr"`
			Time    float64  `xml:"time,attr"`
			Skipped *problem `xml:"skipped"`
			Failure *problem `xml:"failure"`
			Error   *problem `xml:"error"`
			Out     string   `xml:"system-out"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

type problem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

func junit(t *testing.T, r *report.Run) result {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.JUnit(&b))
	var out result
	d := xml.NewDecoder(strings.NewReader(b.String()))
	d.Strict = true
	require.NoError(t, d.Decode(&out), b.String())
	tests, failures, errs := 0, 0, 0
	for _, s := range out.Suites {
		require.Len(t, s.Cases, s.Tests)
		failed, erred, skipped, time := 0, 0, 0, 0.0
		for _, c := range s.Cases {
			require.NotEmpty(t, c.Name)
			require.NotEmpty(t, c.Class)
			time += c.Time
			for _, p := range []*problem{c.Failure, c.Error, c.Skipped} {
				if p != nil {
					require.NotEmpty(t, p.Message)
					require.NotContains(t, p.Message, "\n")
				}
			}
			switch {
			case c.Failure != nil:
				failed++
			case c.Error != nil:
				erred++
			case c.Skipped != nil:
				skipped++
			}
		}
		require.Equal(t, []int{failed, erred, skipped}, []int{s.Failures, s.Errors, s.Skipped}, s.Name)
		require.InDelta(t, time, s.Time, 0.001*float64(len(s.Cases)))
		tests, failures, errs = tests+s.Tests, failures+s.Failures, errs+s.Errors
	}
	require.Equal(t, []int{tests, failures, errs}, []int{out.Tests, out.Failures, out.Errors})
	return out
}

func TestJUnit(t *testing.T) {
	good := junit(t, succeeded())
	require.Zero(t, good.Failures+good.Errors)
	require.Equal(t, 17+3, good.Tests)
	require.Equal(t, "infrastructure", good.Suites[0].Name)
	require.Equal(t, "log: steps/infrastructure.preflight/log.txt", good.Suites[0].Cases[0].Out)
	require.InDelta(t, 1.7, good.Suites[0].Cases[0].Time, 0.0001)

	bad := junit(t, failed())
	require.Equal(t, 2, bad.Failures, "the step and the app")
	sync := bad.Suites[2].Cases[1]
	require.Equal(t, "SYN-003", sync.Failure.Type)
	require.Contains(t, sync.Failure.Message, "cannot be pulled")
	require.Contains(t, sync.Failure.Text, "remedy: correct the app")
	require.Contains(t, sync.Failure.Text, "<script>document.title='owned'</script>")
	require.NotContains(t, sync.Failure.Text, "\x1b")
	require.Equal(t, "blocked by orchestrator/sync", bad.Suites[3].Cases[0].Skipped.Message)
	require.Contains(t, bad.Suites[4].Cases[1].Out, "warning: run the hook announce")
	require.Equal(t, "applications.argocd", bad.Suites[5].Cases[2].Class)
	require.Contains(t, bad.Suites[5].Cases[2].Failure.Text, "ImagePullBackOff")
}

// TestJUnit_withoutAFailedStep: a run that did not succeed is never green.
func TestJUnit_withoutAFailedStep(t *testing.T) {
	stopped := &fault.Fault{Code: "RUN-001", Class: fault.Cancelled, Op: "run the pipeline", Fix: "run it again", Err: errors.New("stopped on request")}
	r := startedRun("install", nil)
	r.Finish([]pipeline.Result{
		{Key: key("a", "done"), Status: pipeline.Succeeded, Started: at(0), Finished: at(1)},
		{Key: key("a", "left"), Status: pipeline.Cancelled, Finished: at(1), Err: pipeline.ErrStopped},
	}, stopped, at(1))
	got := junit(t, r)
	require.Equal(t, "not started: the run was cancelled", got.Suites[0].Cases[1].Skipped.Message)
	require.Equal(t, "run", got.Suites[1].Name)
	require.Equal(t, "RUN-001", got.Suites[1].Cases[0].Error.Type)

	r = startedRun("install", nil)
	r.Finish([]pipeline.Result{{Key: key("a", "torn"), Status: pipeline.Cancelled, Started: at(0), Finished: at(1), Err: stopped}}, stopped, at(1))
	got = junit(t, r)
	require.Len(t, got.Suites, 1)
	require.Contains(t, got.Suites[0].Cases[0].Error.Message, "stopped on request")

	got = junit(t, startedRun("destroy", nil)) // killed before the first step
	require.Equal(t, 1, got.Errors)
}
