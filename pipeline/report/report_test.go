package report_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

func at(seconds float64) time.Time {
	return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func key(stage, name string) pipeline.Key { return pipeline.Key{Stage: stage, Name: name} }

// run is the record of a failed install.
func run() *report.Run {
	f := &fault.Fault{
		Code: "APP-002", Class: fault.Timeout, Op: "wait for the apps", Fix: "correct the image, then run slipway install again",
		Log: "steps/orchestrator.apps/log.txt", Err: errors.New("web is Degraded after 5m0s:\nImagePullBackOff \x1b[31mnot found\x1b[0m"),
	}
	results := []pipeline.Result{
		{Key: key("configure", "config"), Status: pipeline.Succeeded, Started: at(0), Finished: at(0.4213)},
		{Key: key("infrastructure", "terraform"), Status: pipeline.Reused, Started: at(1), Finished: at(13), Detail: pipeline.Detail{Attempt: 1, Log: "steps/infrastructure.terraform/log.txt"}},
		{Key: key("orchestrator", "apps"), Status: pipeline.Failed, Started: at(13), Finished: at(318), Err: f, Detail: pipeline.Detail{Attempt: 2}},
		{Key: key("post-orchestrator", "access"), Status: pipeline.Blocked, Finished: at(318), Err: &pipeline.BlockedError{By: []pipeline.Key{key("orchestrator", "apps")}}},
		{Key: key("post-orchestrator", "checks"), Status: pipeline.Cancelled, Finished: at(318), Err: pipeline.ErrStopped},
	}
	r := &report.Run{
		ID: "20260102-030405-a1b2c3", Workflow: "install", Deployment: "blue", Provider: "local",
		Platform: report.Platform{Name: "reference", Version: "1.0.0"}, Started: at(0),
		Apps: []report.App{
			{Name: "root", Namespace: "argocd", Sync: "Synced", Health: "Progressing", Revision: strings.Repeat("0123456789", 4)},
			{Name: "web", Namespace: "guestbook", Wave: 30, Sync: "Synced", Health: "Degraded", Cause: "web-0: ImagePullBackOff"},
		},
		Links:    []report.Link{{Name: "Gitea", URL: "https://gitea.slipway.test"}},
		Commands: []string{"dagger call kubeconfig"},
	}
	r.Finish(results, errors.Join(&pipeline.StepError{Stage: "orchestrator", Step: "apps", Err: f}), at(319))
	return r
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run go test ./pipeline/report -update if this change is meant")
}

func TestSummary(t *testing.T) {
	var b strings.Builder
	require.NoError(t, run().Summary(&b))
	golden(t, "summary.txt", []byte(b.String()))
	require.NotContains(t, b.String(), "\x1b")
}

func TestEncode(t *testing.T) {
	r := run()
	b, err := r.Encode()
	require.NoError(t, err)
	golden(t, "run.json", b)

	back, err := report.Decode(b)
	require.NoError(t, err)
	require.Equal(t, report.Failed, back.Outcome)
	require.Equal(t, fault.Timeout, back.Exit)
	require.Equal(t, fault.Code("APP-002"), back.Fault.Code)
	require.Equal(t, "steps/orchestrator.apps/log.txt", back.Steps[2].Log)
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
	r.Started, r.Err = time.Time{}, &pipeline.BlockedError{By: []pipeline.Key{key("x", "y")}}
	require.Equal(t, "a/b: blocked by x/y", report.Line(pipeline.Event{Status: pipeline.Blocked, Result: r}))
}
