package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// TestCounts: what a step has counted is in the record and in all that is made from it, also
// of a step that failed.
func TestCounts(t *testing.T) {
	r := startedRun("test", nil)
	r.Finish([]pipeline.Result{
		{Key: key("apps-check", "writer"), Status: pipeline.Failed, Started: at(0), Finished: at(1), Detail: pipeline.Detail{Counts: map[string]int64{"rows": 812, "missing": 1}}},
		{Key: key("apps-check", "visitors"), Status: pipeline.Succeeded, Started: at(0), Finished: at(1)},
	}, nil, at(1))
	text, err := r.Encode()
	require.NoError(t, err)
	again, err := report.Decode(text)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"rows": 812, "missing": 1}, again.Steps[0].Counts)
	require.Equal(t, 1, strings.Count(string(text), `"counts"`))

	const line = "apps-check/writer counted: missing 1, rows 812"
	var brief, junit strings.Builder
	require.NoError(t, r.Brief(&brief))
	require.Contains(t, brief.String(), "\n"+line+"\n")
	require.Contains(t, markdown(t, r), "\n- "+line+"\n")
	require.NoError(t, r.JUnit(&junit))
	require.Contains(t, junit.String(), "counted: missing 1, rows 812")

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, report.RecordFile), text, 0o600))
	require.NoError(t, report.Render(dir, r.ID, false))
	page, err := os.ReadFile(filepath.Join(dir, report.PageFile))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(page), "<dt>Counted</dt><dd>missing 1, rows 812</dd>"))
}
