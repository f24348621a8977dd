package workflow

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/packing"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// endedIn is a run that ended so, in a step with a code.
func endedIn(outcome report.Outcome, step string, code fault.Code) *original {
	at := time.Now()
	r := &report.Run{ID: "r", Outcome: outcome, Slipway: "dev", Tools: map[string]string{"helm": "sha256:0123456789abcdef"}, Steps: []report.Step{{Stage: "infrastructure", Step: "cluster", Status: pipeline.Succeeded, Started: at, Finished: at, Seconds: 12}}}
	status := pipeline.Failed
	if outcome == report.Interrupted {
		status = pipeline.Interrupted
	}
	if step != "" {
		s := report.Step{Stage: "orchestrator", Step: step, Status: status, Started: at, Finished: at, Seconds: 45}
		if code != "" {
			s.Fault = &fault.Fault{Code: code, Class: fault.Step, Err: bytes.ErrTooLarge}
			r.Fault = s.Fault
		}
		r.Steps = append(r.Steps, s)
	}
	return originalOf(r, "v0.20.8", "6.1.0", packing.Digests{Images: map[string]string{"gitea": "slipway.local/gitea@sha256:aaaaaaaaaaaaaaaa"}})
}

func TestWhatIsReproduced(t *testing.T) {
	failed := endedIn(report.Failed, "sync", "ORC-005")
	succeeded := endedIn(report.Succeeded, "", "")
	killed := endedIn(report.Interrupted, "sync", "")
	for what, c := range map[string]struct {
		was, is *original
		until   string
		same    bool
	}{
		"the same":                               {failed, endedIn(report.Failed, "sync", "ORC-005"), "orchestrator/sync", true},
		"another code":                           {failed, endedIn(report.Failed, "sync", "ORC-004"), "orchestrator/sync", false},
		"another step":                           {failed, endedIn(report.Failed, "projects", "ORC-005"), "orchestrator/sync", false},
		"it succeeds":                            {failed, succeeded, "orchestrator/sync", false},
		"both succeed":                           {succeeded, succeeded, "", true},
		"it fails now":                           {succeeded, failed, "", false},
		"up to a step before":                    {failed, succeeded, "infrastructure/cluster", true},
		"up to a step after it":                  {failed, endedIn(report.Failed, "sync", "ORC-005"), "postorchestrator/access", true},
		"that succeeds now":                      {failed, succeeded, "postorchestrator/access", false},
		"a stage is no step":                     {failed, succeeded, "orchestrator", false},
		"that fails before":                      {failed, endedIn(report.Failed, "projects", "PLT-017"), "infrastructure/cluster", false},
		"it fails where the original was killed": {killed, failed, "orchestrator/sync", true},
		"it was killed, and does not fail":       {killed, succeeded, "orchestrator/sync", false},
	} {
		var out bytes.Buffer
		same, err := c.was.compare(&out, c.is, c.until)
		require.NoError(t, err)
		if c.same {
			require.NoError(t, same, what)
			require.Contains(t, out.String(), "\nreproduced: ", what)
			continue
		}
		require.ErrorIs(t, same, &fault.Fault{Code: codeNotReproduced}, what)
		require.Contains(t, out.String(), "\nnot reproduced: ", what)
	}
	is := endedIn(report.Failed, "sync", "ORC-005")
	is.facts["kernel"], is.facts["tool helm"] = "6.5.0", "sha256:fedcba9876543210"
	is.facts["lock"], is.facts["images"] = "sha256:1111111111111111", "sha256:2222222222222222"
	var out bytes.Buffer
	_, err := failed.compare(&out, is, "orchestrator/sync")
	require.NoError(t, err)
	require.Contains(t, out.String(), "reproduced: failed with ORC-005 in orchestrator/sync\n")
	for _, line := range []string{`kernel +6\.1\.0 +6\.5\.0`, `tool helm +0123456789ab +fedcba987654`, `lock +- +111111111111`, `images +- +222222222222`, `engine +v0\.20\.8 +v0\.20\.8`} {
		require.Regexp(t, "(?m)^"+line+"$", out.String())
	}
	require.NotContains(t, out.String(), "gitea", "what is the same is left out")
	out.Reset()
	same, err := failed.compare(&out, endedIn(report.Succeeded, "", ""), "infrastructure/cluster")
	require.NoError(t, errors.Join(same, err))
	require.Contains(t, out.String(), "reproduced: up to infrastructure/cluster nothing failed, as in the original\n")
	require.Equal(t, "ended from outside in orchestrator/sync", killed.String())
	require.Equal(t, "succeeded", succeeded.String())
}

// The record in a package is what somebody wrote: each name of it stays in its line.
func TestNamesOfARecordAreNoLines(t *testing.T) {
	const forged = "X\x1b]0;t\a\n\nreproduced: failed"
	was := originalOf(&report.Run{ID: forged, Outcome: report.Failed, Slipway: forged, Lock: forged, Tools: map[string]string{"x\n" + forged: "a\n" + forged}, Steps: []report.Step{{
		Stage: "a\n" + forged, Step: "b", Status: pipeline.Failed, Seconds: 9, Fault: &fault.Fault{Code: forged},
	}}}, forged, forged, packing.Digests{All: forged, Images: map[string]string{forged: "x@" + forged}})
	var out bytes.Buffer
	_, err := was.compare(&out, endedIn(report.Succeeded, "", ""), "")
	require.NoError(t, err)
	require.NotRegexp(t, `(?m)^\s*reproduced`, out.String()+was.String())
	require.NotContains(t, out.String(), "\x1b")
}

func TestWhatIsNotReproduced(t *testing.T) {
	err := notFresh("shop")
	require.ErrorIs(t, err, &fault.Fault{Code: codeNotFresh})
	require.ErrorContains(t, err, "deployment shop")
	err = notAgain("r", "preorchestrator/restore", "upgrade")
	require.ErrorIs(t, err, &fault.Fault{Code: packing.CodeIncomplete})
	require.ErrorContains(t, err, "preorchestrator/restore is no step of an upgrade")
	require.NotEqual(t, newName(), newName())
}
