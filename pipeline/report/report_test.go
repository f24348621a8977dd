package report_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run go test ./pipeline/report -update if this change is meant")
}

func TestEncode(t *testing.T) {
	b, err := failed().Encode()
	require.NoError(t, err)
	back, err := report.Decode(b)
	require.NoError(t, err)
	require.Equal(t, report.Failed, back.Outcome)
	require.Equal(t, fault.Step, back.Exit)
	require.Equal(t, fault.Code("SYN-003"), back.Fault.Code)
	require.Equal(t, "steps/orchestrator.sync/log.txt", back.Steps[15].Log)
	require.Equal(t, []string{"preorchestrator/gitea"}, back.Steps[14].Needs)
	again, err := back.Encode()
	require.NoError(t, err)
	require.Equal(t, string(b), string(again))
}

func TestDecode_errors(t *testing.T) {
	for text, want := range map[string]string{
		`{"version":2}`: "it has version 2, this program knows 1",
		`{}`:            "it has version 0",
		`{"version":`:   "unexpected end",
	} {
		_, err := report.Decode([]byte(text))
		require.ErrorContains(t, err, want)
	}
}

func TestFinish(t *testing.T) {
	r := &report.Run{Started: at(0)}
	require.Zero(t, r.Elapsed())
	r.Finish(nil, nil, at(2))
	require.Equal(t, report.Succeeded, r.Outcome)
	require.Equal(t, fault.OK, r.Exit)
	require.Equal(t, 2*time.Second, r.Elapsed())
	b, err := r.Encode()
	require.NoError(t, err)
	require.Contains(t, string(b), `"steps": []`)
	require.Contains(t, string(b), `"apps": []`)

	var p pipeline.Pipeline
	stop := make(chan struct{})
	close(stop)
	pipeline.Add(&p, key("a", "b"), func(context.Context) (int, error) { return 0, nil })
	results, err := p.Run(t.Context(), pipeline.Options{Stop: stop})
	r.Finish(results, err, at(3))
	require.Equal(t, report.Cancelled, r.Outcome)
	require.Equal(t, fault.Cancelled, r.Exit)
	require.Equal(t, pipeline.CodeCancelled, r.Fault.Code)

	r.Finish(nil, errors.New("a bug"), at(3))
	require.Equal(t, report.Failed, r.Outcome)
	require.Equal(t, fault.Bug, r.Exit)
	require.Nil(t, r.Fault)
}

func TestNewID(t *testing.T) {
	zone := time.FixedZone("east", 2*3600)
	id := report.NewID(at(0).In(zone))
	require.Regexp(t, `^20260102-030405-[0-9a-f]{6}$`, id)
	require.NotEqual(t, id, report.NewID(at(0)))
	require.Less(t, id, report.NewID(at(1)))
	when, err := report.IDTime(id)
	require.NoError(t, err)
	require.True(t, when.Equal(at(0)))
	for _, bad := range []string{"", "latest", "20261302-030405-a1b2c3", "../20260102-030405-a1b2c3"} {
		_, err = report.IDTime(bad)
		require.ErrorContains(t, err, fmt.Sprintf("%q", bad))
	}
}

func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-1: "-", 0: "0.0s", 449 * time.Millisecond: "0.4s", 9949 * time.Millisecond: "9.9s", 9950 * time.Millisecond: "10s",
		59600 * time.Millisecond: "1m00s", 185 * time.Second: "3m05s", 3599600 * time.Millisecond: "1h00m", 3750 * time.Second: "1h02m",
	} {
		require.Equal(t, want, report.Took(d))
	}
}

func TestLine(t *testing.T) {
	r := pipeline.Result{Key: key("a", "b"), Started: at(0)}
	require.Equal(t, "a/b: running", report.Line(pipeline.Event{Status: pipeline.Running, Result: r}))
	r.Finished = at(12)
	require.Equal(t, "a/b: succeeded after 12s", report.Line(pipeline.Event{Status: pipeline.Succeeded, Result: r}))
	r.Err = errors.New("first\nsecond")
	require.Equal(t, "a/b: failed after 12s: first", report.Line(pipeline.Event{Status: pipeline.Failed, Result: r}))
	r.Err = errors.New(strings.Repeat("long ", 100))
	require.Equal(t, "a/b: failed after 12s: "+strings.Repeat("long ", 40)+"…", report.Line(pipeline.Event{Status: pipeline.Failed, Result: r}))
	r.Err = errors.New(strings.Repeat("longer ", 40))
	require.Equal(t, "a/b: failed after 12s: "+strings.Repeat("longer ", 28)+"…", report.Line(pipeline.Event{Status: pipeline.Failed, Result: r}), "no word is cut")
	r.Started, r.Err = time.Time{}, &pipeline.BlockedError{By: []pipeline.Key{key("x", "y")}}
	require.Equal(t, "a/b: blocked by x/y", report.Line(pipeline.Event{Status: pipeline.Blocked, Result: r}))
}

// TestBrief: the whole error is the caller's to print.
func TestBrief(t *testing.T) {
	long := strings.Repeat("long ", 100)
	r := report.Run{Steps: []report.Step{{Stage: "a", Step: "b", Status: pipeline.Failed, Error: long}, {Stage: "a", Step: "c", Status: pipeline.Failed, Error: "short"}}}
	var brief, summary strings.Builder
	require.NoError(t, r.Brief(&brief))
	require.NoError(t, r.Summary(&summary))
	require.Contains(t, summary.String(), "\na/b: "+long)
	require.Contains(t, brief.String(), "\na/b: "+long[:200]+"…\n")
	require.Contains(t, brief.String(), "\na/c: short\n")
}

// TestFinish_diagnoses: what failed has a sentence, once, and what the run needs not
// care about is a warning.
func TestFinish_diagnoses(t *testing.T) {
	hook := &fault.Fault{Code: "HOK-001", Class: fault.Step, Op: "run the hook check", Fix: "correct it", Err: errors.New("exit status 1")}
	r := startedRun("install", []pipeline.Node{{Key: key("a", "first")}, {Key: key("a", "second"), Needs: []pipeline.Key{key("a", "first")}}})
	r.Diagnosis = []report.Diagnosis{{Summary: "somebody knows better", Step: "a/first"}}
	r.Finish([]pipeline.Result{
		{Key: key("a", "first"), Status: pipeline.Failed, Err: errors.New("bare")},
		{Key: key("a", "second"), Status: pipeline.Failed, Err: fmt.Errorf("hook before the step: %w", hook)},
		{Key: key(report.HooksStage, "check"), Status: pipeline.Failed, Err: hook},
		{Key: key(report.HooksStage, "last"), Status: pipeline.Failed, Err: errors.New("by itself\nwith a reason")},
		{Key: key(report.HooksStage, "chat"), Status: pipeline.Warned, Err: hook},
	}, errors.New("all of it"), at(1))
	require.Equal(t, []report.Diagnosis{
		{Summary: "somebody knows better", Step: "a/first"},
		{Summary: "exit status 1", Step: "a/second", Details: []string{}},
		{Summary: "by itself", Step: "hooks/last", Details: []string{"with a reason"}},
	}, r.Diagnosis)
	require.Equal(t, []report.Warning{{Summary: "exit status 1", Step: "hooks/chat", Fix: "correct it"}}, r.Warnings)
	require.Equal(t, []string{"a/first"}, r.Steps[1].Needs)

	r = startedRun("install", []pipeline.Node{{Key: key("a", "first"), Settled: []pipeline.Key{key("a", "zero")}}})
	require.Equal(t, pipeline.Pending, r.Steps[0].Status)
	require.Equal(t, []string{"a/zero"}, r.Steps[0].After)
}

// TestRun_Address: what is in a record for people to type works on its deployment.
func TestRun_Address(t *testing.T) {
	f := &fault.Fault{Code: "X-001", Class: fault.Step, Fix: "run slipway status", Err: errors.New("no")}
	r := &report.Run{Fault: f, Steps: []report.Step{{Fault: f}, {}}, Warnings: []report.Warning{{Fix: "correct it"}}, Commands: []string{"slipway cluster"}}
	r.AddFlags("--name dev")
	require.Equal(t, "run slipway status (with the same flags: --name dev)", r.Fault.Fix)
	require.Equal(t, r.Fault.Fix, r.Steps[0].Fault.Fix)
	require.Nil(t, r.Steps[1].Fault)
	require.Equal(t, []report.Warning{{Fix: "correct it"}}, r.Warnings)
	require.Equal(t, []string{"slipway cluster", "# slipway commands need the flags of this run, too: --name dev"}, r.Commands)
	require.Equal(t, "run slipway status", f.Fix, "that of the error is printed with it once")

	r = &report.Run{Fault: f, Commands: []string{"slipway cluster --name dev"}}
	r.AddFlags("--name dev")
	require.Equal(t, []string{"slipway cluster --name dev"}, r.Commands, "it has them")
	r.AddFlags("")
	require.Equal(t, "run slipway status (with the same flags: --name dev)", r.Fault.Fix)
}

func TestARunThatHasChangedNothingSaysSo(t *testing.T) {
	r := succeeded()
	r.Unchanged = true
	var text, md strings.Builder
	require.NoError(t, r.Summary(&text))
	require.Contains(t, text.String(), ", run 20260102-030405-a1b2c3\nnothing changed: what earlier runs have done still holds\n\nSTEP")
	require.NoError(t, r.Markdown(&md))
	require.Contains(t, md.String(), "; nothing changed; exit code 0")
	dir := directory(t, r)
	require.NoError(t, report.Render(dir, r.ID, false))
	page, err := os.ReadFile(filepath.Join(dir, report.PageFile))
	require.NoError(t, err)
	require.Contains(t, string(page), "Nothing changed")
}
