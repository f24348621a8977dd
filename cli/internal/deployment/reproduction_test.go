package deployment

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// TestHowAFailedRunIsReproduced: only a step of what is run again is.
func TestHowAFailedRunIsReproduced(t *testing.T) {
	failed := func(step string) *report.Run {
		stage, name, _ := strings.Cut(step, "/")
		r := &report.Run{ID: "r1", Workflow: config.Upgrade, Outcome: report.Failed}
		r.Steps = []report.Step{{Stage: stage, Step: name, Status: pipeline.Failed}}
		return r
	}
	steps := []string{"preorchestrator/gitea"}
	for step, there := range map[string]bool{"preorchestrator/gitea": true, report.HooksStage + "/before": true, "preorchestrator/restore": false} {
		lines := reproduction(failed(step), steps, usage.Line{})
		require.Equal(t, "slipway save --run r1 --out run.tar.zst", lines[0], step)
		require.Equal(t, there, slices.Contains(lines, "slipway reproduce --package run.tar.zst"), step)
	}
}

// TestWhatWasRejectedIsNotReproduced: its reason is in what the deployment had before.
func TestWhatWasRejectedIsNotReproduced(t *testing.T) {
	d := &Deployment{Config: config.Default()}
	require.Empty(t, d.reproduction(&report.Run{ID: "r1", Workflow: config.Install, Outcome: report.Failed, Exit: fault.Usage}))
}
