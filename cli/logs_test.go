package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// aRun is a run of three steps, of which the second one has a log that begins with text.
func aRun(outcome report.Outcome, text string) (fstest.MapFS, *report.Run) {
	files := fstest.MapFS{
		"steps/a.one/log.txt": {Data: []byte("first\n")},
		"steps/b.two/log.txt": {Data: []byte(text)},
	}
	return files, &report.Run{ID: "r1", Outcome: outcome, Steps: []report.Step{
		{Stage: "a", Step: "one", Status: pipeline.Succeeded, Log: "steps/a.one/log.txt"},
		{Stage: "b", Step: "two", Status: pipeline.Running, Log: "steps/b.two/log.txt"},
		{Stage: "b", Step: "three", Status: pipeline.Pending, Log: "steps/b.three/log.txt"},
		{Stage: "b", Step: "action", Status: pipeline.Succeeded},
	}}
}

func TestLogsOfARun(t *testing.T) {
	for of, says := range map[string]string{
		"":        "==> a/one <==\nfirst\n\n==> b/two <==\nx\ny",
		"b":       "==> b/two <==\nx\ny",
		"b/two":   "x\ny",
		"b/three": "",
	} {
		var out strings.Builder
		l := stepLogs{out: &out, of: of, printed: map[string]int{}}
		dir, run := aRun(report.Failed, "x\ny")
		require.NoError(t, l.print(dir, run))
		require.Equal(t, says, out.String(), of)
	}
	for _, of := range []string{"two", "b/", "b/tw", "c"} {
		l := stepLogs{out: &strings.Builder{}, of: of, printed: map[string]int{}}
		dir, run := aRun(report.Failed, "x\n")
		require.ErrorContains(t, l.print(dir, run), "its steps are a/one, b/two, b/three, b/action", of)
	}
}

// TestLogsAreFollowed: each line is printed once, when it is complete or the run has ended.
func TestLogsAreFollowed(t *testing.T) {
	var out strings.Builder
	l := stepLogs{out: &out, printed: map[string]int{}}
	for _, c := range []struct {
		outcome    report.Outcome
		text, says string
	}{
		{report.Running, "", "==> a/one <==\nfirst\n"},
		{report.Running, "x\npart", "\n==> b/two <==\nx\n"},
		{report.Running, "x\npartly\n", "partly\n"},
		{report.Running, "x\npartly\n", ""},
		{report.Succeeded, "x\npartly\nend", "end"},
	} {
		out.Reset()
		dir, run := aRun(c.outcome, c.text)
		require.NoError(t, l.print(dir, run))
		require.Equal(t, c.says, out.String(), c.text)
	}
}

// TestALogIsInTheRunsDirectory, whatever the record says.
func TestALogIsInTheRunsDirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("hunter2\n"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "run"), 0o700))
	require.NoError(t, os.Symlink("../secret", filepath.Join(dir, "run", "link")))
	root, err := os.OpenRoot(filepath.Join(dir, "run"))
	require.NoError(t, err)
	defer func() { require.NoError(t, root.Close()) }()
	_, run := aRun(report.Failed, "")
	for _, log := range []string{"../secret", filepath.Join(dir, "secret"), "link"} {
		run.Steps[0].Log = log
		var out strings.Builder
		require.ErrorContains(t, (&stepLogs{out: &out, printed: map[string]int{}}).print(root.FS(), run), "read the log of a/one: ", log)
		require.Empty(t, out.String())
	}
}

func TestWrongCommandLinesOfLogs(t *testing.T) {
	code, _, errs := slipway("logs", "a", "b")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "give one step or stage, or nothing")
}
