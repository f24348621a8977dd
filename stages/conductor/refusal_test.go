package conductor

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

func TestWhatARefusalIs(t *testing.T) {
	unfit := &fault.Fault{Code: "INF-034", Class: fault.Preflight, Op: "check the disk", Err: errors.New("1 GiB is free")}
	broken := &fault.Fault{Code: "TFM-001", Class: fault.Step, Op: "apply", Err: errors.New("it ended")}
	step := func(stage string, f *fault.Fault) report.Step {
		return report.Step{Stage: stage, Step: "a", Status: pipeline.Failed, Fault: f}
	}
	for what, c := range map[string]struct {
		workflow string
		outcome  report.Outcome
		steps    []report.Step
		want     bool
	}{
		"preflight":               {"install", report.Failed, []report.Step{step("infrastructure", unfit)}, true},
		"a rollback":              {"rollback", report.Failed, []report.Step{step("infrastructure", unfit), {Status: pipeline.Blocked}}, true},
		"another one failed, too": {"install", report.Failed, []report.Step{step("infrastructure", unfit), step("infrastructure", broken)}, false},
		"a later stage":           {"install", report.Failed, []report.Step{step("orchestrator", unfit)}, false},
		"no code":                 {"install", report.Failed, []report.Step{step("infrastructure", nil)}, false},
		"no step":                 {"install", report.Failed, nil, false},
		"a destroy":               {"destroy", report.Failed, []report.Step{step("infrastructure", unfit)}, false},
		"cancelled":               {"install", report.Cancelled, []report.Step{step("infrastructure", unfit)}, false},
	} {
		got := contract.RefusalOf(&report.Run{ID: "r1", Workflow: c.workflow, Outcome: c.outcome, Fault: unfit, Steps: c.steps})
		require.Equal(t, c.want, got != nil, what)
	}
	require.True(t, allRefuse([]pipeline.Result{failedAt("infrastructure", "ownership", unfit)}))
	require.False(t, allRefuse([]pipeline.Result{failedAt("infrastructure", "ownership", unfit), failedAt("infrastructure", "cluster", errors.New("no code"))}))
}

// TestStatusAfterARefusedRun: it shows the deployment as it is, and says what was refused.
func TestStatusAfterARefusedRun(t *testing.T) {
	refused := &contract.Refusal{Run: "r2", Workflow: "upgrade", Code: "UPG-001", Error: "install 1.0.0:\n1.1.0 is installed"}
	s, err := (&Records{name: "blue"}).status(&contract.Stored{
		Record:  &report.Run{ID: "r1", Workflow: "install", Outcome: report.Succeeded, Platform: report.Platform{Name: "shop", Version: "1.1.0"}},
		Refused: refused, Cluster: true, Platform: "1.1.0",
	})
	require.NoError(t, err)
	require.Equal(t, contract.Success, s.State)
	require.Equal(t, refused, s.Refused)
	var w strings.Builder
	require.NoError(t, s.Text(&w))
	require.True(t, strings.HasPrefix(w.String(), "blue: Success\nthe last run, upgrade r2, was refused, and changed nothing: UPG-001: install 1.0.0: 1.1.0 is installed\n"), w.String())
	require.Contains(t, w.String(), "install blue (shop 1.1.0): succeeded, run r1\n")

	s, err = (&Records{name: "blue"}).status(&contract.Stored{Record: &report.Run{ID: "r2", Workflow: "install", Outcome: report.Failed}, Refused: refused})
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeNotThere}, "the first install was refused")
	require.Equal(t, contract.NotStarted, s.State)
	w.Reset()
	require.NoError(t, s.Text(&w))
	require.Contains(t, w.String(), "blue: NotStarted\nthe last run, upgrade r2, was refused")
}

// A run that somebody ended has not failed.
func TestTheStatusSaysHowTheRunEnded(t *testing.T) {
	for outcome, want := range map[report.Outcome]contract.Progress{
		report.Running: contract.InProgress, report.Succeeded: contract.Success, report.Failed: contract.Failure,
		report.Cancelled: contract.Cancelled, report.Interrupted: contract.Interrupted,
	} {
		s, err := (&Records{name: "blue"}).status(&contract.Stored{Record: &report.Run{ID: "r1", Workflow: "install", Outcome: outcome}, Cluster: true})
		require.NoError(t, err)
		require.Equal(t, want, s.State)
	}
}
