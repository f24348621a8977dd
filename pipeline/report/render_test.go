package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// TestRender writes the pages that the browser's test (ci/test/e2e) opens too.
func TestRender(t *testing.T) {
	for name, r := range map[string]*report.Run{"succeeded": succeeded(), "failed": failed(), "phases": phased()} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t, r)
			require.NoError(t, report.Render(dir, r.ID, false))
			for _, file := range []string{report.RecordFile, report.SummaryFile, report.MarkdownFile, report.JUnitFile, report.PageFile} {
				got, err := os.ReadFile(filepath.Join(dir, file))
				require.NoError(t, err)
				golden(t, name+"/"+file, got)
			}
		})
	}
}

// TestPage_policy: the page's own script and style are the only ones that its
// policy lets run, and nothing in it comes from elsewhere.
func TestPage_policy(t *testing.T) {
	r := failed()
	text := page(t, directory(t, r), r)
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]+)"`).FindStringSubmatch(text)
	require.NotNil(t, policy)
	for _, tag := range []string{"script", "style"} {
		found := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(text, -1)
		require.Len(t, found, 1, tag)
		sum := sha256.Sum256([]byte(found[0][1]))
		require.Contains(t, html.UnescapeString(policy[1]), tag+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	require.Contains(t, html.UnescapeString(policy[1]), "default-src 'none'; ")
	require.NotContains(t, text, " style=")
	require.NotRegexp(t, `<(link|img|iframe|object|embed|script)[^>]+(src|href)="(https?:)?//`, text)
	require.NotContains(t, text, `href="javascript:`)
	require.NotContains(t, text, "ZgotmplZ")
	require.NotContains(t, text, "\x1b")
	require.NotContains(t, text, "\u202e")
}

// TestRender_withoutAnEnd: a run that goes on and one that was killed left the
// same; whether it is alive makes the difference.
func TestRender_withoutAnEnd(t *testing.T) {
	nodes, _ := plan(graph[:8])
	r := startedRun("install", nodes)
	left := func() string {
		dir := directory(t, r)
		put(t, dir, "steps/infrastructure.preflight/log.txt", "looked\n")
		put(t, dir, "steps/infrastructure.preflight/result.json", `{"status":"succeeded","started":"2026-01-02T03:04:06Z","finished":"2026-01-02T03:04:08.5Z","output":{}}`)
		put(t, dir, "steps/infrastructure.terraform/log.txt", "planned\n")
		put(t, dir, "steps/infrastructure.terraform/result.json", `{"status":"reused","started":"2026-01-02T03:04:09Z","finished":"2026-01-02T03:04:10Z","output":{}}`)
		put(t, dir, "steps/infrastructure.cluster/request.json", `{"run":"r1","input":{}}`)
		put(t, dir, "steps/infrastructure.cluster/log.txt", "working\n")
		for _, looked := range []string{"infrastructure.storage", "preorchestrator.namespaces"} { // whether an earlier result holds
			put(t, dir, "steps/"+looked+"/request.json", `{"run":"r1","verifyOnly":true}`)
			put(t, dir, "steps/"+looked+"/log.txt", "it does not hold\n")
		}
		put(t, dir, "steps/infrastructure.storage/result.json", `{"status":"failed","fault":{"code":"X-001","class":4,"op":"","fix":"","message":"no"}}`)
		put(t, dir, "steps/diagnosis.status/log.txt", "somebody asked for the status\n")
		return dir
	}
	dir := left()
	text := page(t, dir, r)
	require.Contains(t, text, "Install of blue: interrupted")
	require.Contains(t, text, "2 succeeded, 1 reused, 1 interrupted, 4 pending", "the node, whose start leaves nothing, had started when cluster did")
	require.Contains(t, text, "working\n")
	require.NotContains(t, text, "all went well")
	require.Contains(t, text, "Running the same command again continues it")
	junit, err := os.ReadFile(filepath.Join(dir, report.JUnitFile))
	require.NoError(t, err)
	require.Contains(t, string(junit), `<error message="the run was killed while it ran">`)

	b, err := os.ReadFile(filepath.Join(dir, report.RecordFile))
	require.NoError(t, err)
	back, err := report.Decode(b)
	require.NoError(t, err)
	require.Equal(t, report.Interrupted, back.Outcome)
	require.Equal(t, 2.5, back.Steps[0].Seconds)
	require.Equal(t, "steps/infrastructure.preflight/log.txt", back.Steps[0].Log)
	require.Equal(t, []string{"infrastructure/preflight"}, back.Steps[1].Needs)
	require.Equal(t, pipeline.Interrupted, back.Steps[3].Status)

	dir = left()
	require.NoError(t, report.Render(dir, r.ID, true))
	b, err = os.ReadFile(filepath.Join(dir, report.PageFile))
	require.NoError(t, err)
	require.Contains(t, string(b), "Install of blue: running")
	require.Contains(t, string(b), "2 succeeded, 1 reused, 1 running, 4 pending")
	require.NotContains(t, string(b), "Running the same command again")
}

func TestRender_withoutARecord(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "steps/a.b/result.json", `{"status":"failed","started":"2026-01-02T03:04:06Z","finished":"2026-01-02T03:04:08Z","fault":{"code":"X-001","class":4,"op":"do it","fix":"undo it","message":"no"}}`)
	r := startedRun("install", nil)
	text := page(t, dir, r)
	require.Contains(t, text, "X-001")
	require.Contains(t, text, "undo it")
	require.Contains(t, text, ": interrupted")

	require.ErrorContains(t, report.Render(t.TempDir(), "r1", false), "run id")
	put(t, dir, report.RecordFile, `{"version":99}`)
	require.ErrorContains(t, report.Render(dir, r.ID, false), "version 99")
	require.ErrorIs(t, report.Render(filepath.Join(dir, "gone"), r.ID, false), os.ErrNotExist)
}

func TestRender_nothing(t *testing.T) {
	r := startedRun("destroy", nil)
	r.Platform = report.Platform{}
	failure := &fault.Fault{Code: "X-002", Class: fault.Locked, Op: "lock", Fix: "wait", Err: errors.New("held by somebody")}
	r.Finish(nil, failure, at(0.1))
	text := page(t, directory(t, r), r)
	require.Contains(t, text, "Destroy of blue: failed")
	require.Contains(t, text, "held by somebody")
	require.Contains(t, text, "X-002")
	require.Contains(t, text, "The run has no steps")
	require.Contains(t, text, "The run saw no applications")
	require.NotContains(t, text, `<table class="timeline"`)
}

// TestRender_appsOfAFailedStep: the apps are in the report although the step that
// saw them has no output.
func TestRender_appsOfAFailedStep(t *testing.T) {
	r := failed()
	r.Apps = nil
	dir := directory(t, r)
	put(t, dir, "steps/orchestrator.sync/apps.json", `{"apps":[{"name":"guestbook","namespace":"argocd","wave":30,"sync":"Synced","health":"Degraded","revision":"","cause":"no image"}]}`)
	require.Contains(t, page(t, dir, r), "no image")
	b, err := os.ReadFile(filepath.Join(dir, report.RecordFile))
	require.NoError(t, err)
	require.Contains(t, string(b), `"health": "Degraded"`)
}

func TestRender_cancelled(t *testing.T) {
	nodes, results := plan(graph[:4])
	for i := 1; i < 4; i++ {
		results[i] = pipeline.Result{Key: results[i].Key, Status: pipeline.Cancelled, Finished: at(3), Err: pipeline.ErrStopped}
	}
	results[1].Started = at(2)
	r := startedRun("install", nodes)
	r.Finish(results, &fault.Fault{Code: "RUN-001", Class: fault.Cancelled, Op: "run the pipeline", Fix: "run the same command again", Err: pipeline.ErrStopped}, at(3))
	text := page(t, directory(t, r), r)
	require.Contains(t, text, "Install of blue: cancelled")
	require.Contains(t, text, "run the same command again")
	require.Contains(t, text, "1 succeeded, 3 cancelled")
}

// TestRender_doesNothingToATerminal: whatever the state has, and a link leads to the report.
func TestRender_doesNothingToATerminal(t *testing.T) {
	const odd = "k\x1b[31m\x1b]0;x\u009b2J\u009d0;y\u009c\u202e"
	r := one(pipeline.Succeeded)
	r.Deployment, r.Workflow = odd, odd
	s := &r.Steps[0]
	s.Counts, s.Error, s.Note, s.Log = map[string]int64{odd: 1}, odd, odd, "http://evil.example/"+odd
	r.Apps = []report.App{{Name: odd, Cause: odd}}
	dir := t.TempDir()
	record, err := r.Encode()
	require.NoError(t, err)
	put(t, dir, report.RecordFile, string(record))
	text := page(t, dir, r)
	require.Contains(t, text, "<dt>Counted</dt><dd>k")
	require.Contains(t, text, `href="./http://evil.example/`)
	require.NotContains(t, text, `href="http://evil`)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		require.False(t, bytes.ContainsFunc(text, func(r rune) bool { return r == '\x1b' || r >= 0x80 && r < 0xa0 || r == '\u202e' }), "%s", text)
	}
}
