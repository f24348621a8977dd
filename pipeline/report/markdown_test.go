package report_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

func markdown(t *testing.T, r *report.Run) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.Markdown(&b))
	return b.String()
}

func TestMarkdown_escapes(t *testing.T) {
	text := markdown(t, failed())
	outside := text
	for strings.Contains(outside, "```") { // code blocks mean what they say
		before, rest, _ := strings.Cut(outside, "```")
		_, after, ok := strings.Cut(rest, "```")
		require.True(t, ok, "a code block has no end")
		outside = before + after
	}
	for _, bad := range []string{"<script", "<img", "@team", "\x1b", "\u202e"} {
		require.NotContains(t, outside, bad)
	}
	columns := 0
	for line := range strings.Lines(outside) {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		n := strings.Count(line, "|") - strings.Count(line, `\|`)
		if columns > 0 {
			require.Equal(t, columns, n, line)
		}
		columns = n
	}
}

func TestMarkdown_longAndFenced(t *testing.T) {
	r := startedRun("install", nil)
	err := &fault.Fault{Code: "X-001", Class: fault.Step, Op: "do it", Fix: "undo it", Err: errors.New("first\n```\nnot the end\n" + strings.Repeat("é", 1<<14))}
	r.Finish([]pipeline.Result{{Key: key("a", "b"), Status: pipeline.Failed, Started: at(0), Finished: at(1), Err: err}}, err, at(1))
	text := markdown(t, r)
	require.Less(t, len(text), 10_000)
	require.Contains(t, text, "\n````\n```\nnot the end\n")
	require.Contains(t, text, "… (more in report.html)\n````\n")
	require.Contains(t, text, "**Remedy:** undo it")
}

func TestMarkdown_empty(t *testing.T) {
	const want = "## ⏳ install blue (reference 1.0.0): running\n\nRun `20260102-030405-a1b2c3`; steps: none\n"
	r := startedRun("install", nil)
	require.Equal(t, want+"\n`lock "+r.Lock+"`\n", markdown(t, r))
	r.Lock = ""
	require.Equal(t, want, markdown(t, r), "an older record")
}
