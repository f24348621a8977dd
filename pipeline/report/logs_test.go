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

// page renders a directory and returns report.html.
func page(t *testing.T, dir string, r *report.Run) string {
	t.Helper()
	require.NoError(t, report.Render(dir, r.ID, false))
	text, err := os.ReadFile(filepath.Join(dir, report.PageFile))
	require.NoError(t, err)
	return string(text)
}

// one returns a run of one step.
func one(status pipeline.Status) *report.Run {
	r := startedRun("install", []pipeline.Node{{Key: key("a", "b")}})
	r.Finish([]pipeline.Result{{Key: key("a", "b"), Status: status, Started: at(0), Finished: at(1), Detail: pipeline.Detail{Log: "steps/a.b/log.txt"}}}, nil, at(2))
	return r
}

func TestPage_cutsALongLog(t *testing.T) {
	r := one(pipeline.Succeeded)
	dir := directory(t, r)
	log := "the first line\n" + strings.Repeat("0123456789abcde\n", 1<<16) + "the last line\n"
	put(t, dir, "steps/a.b/log.txt", log)
	text := page(t, dir, r)
	require.Contains(t, text, "<pre>the first line\n0123456789abcde\n")
	require.Contains(t, text, "0123456789abcde\nthe last line\n</pre>")
	require.Contains(t, text, "896 KiB left out here")
	require.Less(t, len(text), 200<<10)
	require.NotContains(t, text, "\nabcde", "cut at the end of a line")
}

func TestPage_manyLongLogsShareTheSpace(t *testing.T) {
	var steps []did
	for i := range 100 {
		s := did{id: "stage/step-" + strings.Repeat("x", i%40) + string(rune('a'+i%26)) + string(rune('a'+i/26)), from: float64(i + 1), to: float64(i + 2), status: pipeline.Succeeded}
		if i > 0 {
			s.needs = steps[i-1].id
		}
		steps = append(steps, s)
	}
	nodes, results := plan(steps)
	r := startedRun("install", nodes)
	r.Finish(results, nil, at(102))
	dir := directory(t, r)
	for _, s := range r.Steps {
		put(t, dir, s.Log, strings.Repeat("0123456789abcde\n", 1<<14))
	}
	text := page(t, dir, r)
	require.Less(t, len(text), 9<<20)
	require.Equal(t, 100, strings.Count(text, `<details class="card step" id="step-`))
	require.Equal(t, 100, strings.Count(text, "left out here"))
	require.Contains(t, text, "Critical path <small>100 steps, 1m40s")
}

func TestPage_logsThatAreOdd(t *testing.T) {
	r := one(pipeline.Succeeded)
	dir := directory(t, r)
	log := filepath.Join(dir, "steps/a.b/log.txt")

	put(t, dir, "steps/a.b/log.txt", "10 %\r20 %\r\ntab\there \xff\x00\u202e\x1b(B\x1b]0;title\x07end\x1b[2K\x1bPdcs\x1b\\.\n")
	require.Contains(t, page(t, dir, r), "<pre>10 %\n20 %\ntab\there \ufffdend.\n</pre>")

	put(t, dir, "steps/a.b/log.txt", "")
	require.Contains(t, page(t, dir, r), "The log is empty.")

	require.NoError(t, os.Remove(log))
	require.Contains(t, page(t, dir, r), "There is no log of this step.")

	require.NoError(t, os.Mkdir(log, 0o755))
	require.Contains(t, page(t, dir, r), "The log cannot be read: steps/a.b/log.txt is not a file")

	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("outside"), 0o600))
	require.NoError(t, os.Remove(log))
	require.NoError(t, os.Symlink(outside, log))
	text := page(t, dir, r)
	require.Contains(t, text, "The log cannot be read")
	require.NotContains(t, text, "outside\n")
	r.Steps[0].Log = "../" + filepath.Base(filepath.Dir(outside)) + "/secret"
	b, err := r.Encode()
	require.NoError(t, err)
	put(t, dir, report.RecordFile, string(b))
	require.Contains(t, page(t, dir, r), "The log cannot be read")
}
