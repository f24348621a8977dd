package matrix

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/report"
)

func three() []Result {
	cell := func(to, style string) Cell {
		return Cell{From: "1.0.0", To: to, Scale: 50, Style: style, Faults: NoFault}
	}
	return []Result{
		{Cell: cell("1.1.0", "graceful"), Deployment: "m-1", Outcome: Upgraded, Phases: []Phase{{Name: "install", Took: 50 * time.Second}, {Name: "upgrade", Took: 20 * time.Second}},
			Counts: map[string]int64{RowsAcknowledged: 812, RowsThere: 812, Requests: 1204, RequestsFailed: 0}},
		{Cell: cell("1.1.0", "in-place"), Deployment: "m-2", Outcome: Failed, Code: "CMP-001", Reason: "carry out job <x>",
			Package: "out/m-2/run.tar.zst", Reproduce: "slipway reproduce --package out/m-2/run.tar.zst",
			Phases: []Phase{{Name: "install", Took: time.Second}, {Name: "upgrade", Took: time.Second, Exit: 4}}},
		{Cell: cell("2.0.0", "graceful"), Deployment: "m-3", Outcome: Cancelled},
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Table(&b, three()))
	require.Equal(t, `FROM   TO     SCALE  STYLE     FAULTS  RESULT     TIME   UPGRADE  ROWS KEPT   REQUESTS FAILED  DEPLOYMENT
1.0.0  1.1.0  50     graceful  none    upgraded   1m10s  20s      812 of 812  0 of 1204        m-1
1.0.0  1.1.0  50     in-place  none    failed     2.0s   1.0s     -           -                m-2
1.0.0  2.0.0  50     graceful  none    cancelled  0.0s   -        -           -                m-3

1.0.0 to 1.1.0, scale 50, in-place: upgrade failed: CMP-001 carry out job <x>
  package: out/m-2/run.tar.zst
  reproduce: slipway reproduce --package out/m-2/run.tar.zst
`, b.String())
}

func TestJUnit(t *testing.T) {
	text, err := JUnit(three())
	require.NoError(t, err)
	var all struct {
		XMLName  xml.Name `xml:"testsuites"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Suites   []struct {
			Skipped int    `xml:"skipped,attr"`
			Time    string `xml:"time,attr"`
			Cases   []struct {
				Name    string `xml:"name,attr"`
				Out     string `xml:"system-out"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal(text, &all))
	require.Equal(t, []int{3, 1}, []int{all.Tests, all.Failures})
	require.Len(t, all.Suites, 1)
	suite := all.Suites[0]
	require.Equal(t, 1, suite.Skipped)
	require.Equal(t, "72.000", suite.Time)
	require.Nil(t, suite.Cases[0].Failure)
	require.Equal(t, report.Counted(three()[0].Counts), suite.Cases[0].Out)
	require.NotEmpty(t, suite.Cases[0].Out)
	require.Empty(t, suite.Cases[1].Out)
	require.Contains(t, suite.Cases[1].Failure.Text, "\nreproduce: slipway reproduce --package out/m-2/run.tar.zst")
	require.Equal(t, "upgrade failed: CMP-001 carry out job <x>", suite.Cases[1].Failure.Message)
}

func TestAPartWithoutCells(t *testing.T) {
	text, err := JSON(nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"cells": []}`, string(text))
}

func TestPage(t *testing.T) {
	r := Results(t.TempDir())
	all := append(three(),
		Result{Cell: Cell{From: "1.1.0", To: "2.0.0", Style: "graceful", Faults: NoFault}, Deployment: "m-4", Outcome: Failed},
		Result{Cell: Cell{From: "1.1.0", To: "2.0.0", Style: "in-place", Faults: NoFault}, Outcome: Cancelled})
	for _, name := range []string{"report", "m-2/report", "m-4/report", "m-4/tests"} {
		require.NoError(t, os.MkdirAll(filepath.Join(string(r), name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(string(r), name, "report.html"), nil, 0o600))
	}
	text, err := r.Page(all)
	require.NoError(t, err)
	page := string(text)
	require.Contains(t, page, `<a href="m-4/tests/report.html">failed</a>`, "of its last run")
	require.Equal(t, 2, strings.Count(page, "report.html"), "the others have left none")
	require.Contains(t, page, "5 cells: 1 upgraded, 2 failed, 2 not run")
	require.Contains(t, page, `<td class="failed"><a href="m-2/report/report.html">failed</a> 2.0s</td>`)
	require.Contains(t, page, `>upgraded 1m10s<br><small>812 of 812 rows kept, 0 of 1204 requests failed</small></td>`)
	require.Contains(t, page, "carry out job &lt;x&gt;")
	require.Contains(t, page, `<a href="m-2/run.tar.zst">package</a>`)
	require.Contains(t, page, "<code>slipway reproduce --package out/m-2/run.tar.zst</code>")
	require.Equal(t, 2, strings.Count(page, `<th scope="row">`), "two releases are upgraded")
}

// TestAnUpgradeThatPassedIsKept, and nothing else: no failure, and no torn file.
func TestAnUpgradeThatPassedIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	r := Results(dir)
	for i, want := range three() {
		_, err := r.begin(want.Deployment)
		require.NoError(t, err)
		require.NoError(t, r.keep(want))
		got, kept := r.earlier(want.Deployment)
		require.Equal(t, want.Outcome == Upgraded, kept, "cell %d", i)
		require.Equal(t, want, got)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m-1", "result.json"), []byte(`{"cell":`), 0o600))
	_, kept := r.earlier("m-1")
	require.False(t, kept, "it is torn")

	require.NoError(t, r.Summarise(three()))
	var all struct{ Cells []Result }
	text, err := os.ReadFile(filepath.Join(dir, "matrix.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &all))
	require.Equal(t, three(), all.Cells)
}
