package workflow

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

func TestOneGoesBackToTheLastUpgrade(t *testing.T) {
	backups := []contract.BackupSummary{{ID: "b1", Reason: contract.ForUpgrade}, {ID: "b2", Reason: contract.ForUpgrade}, {ID: "b3", Reason: contract.ForRollback}, {ID: "b4", Problem: "it is torn"}}
	last, err := lastOf(backups[:3], nil)
	require.NoError(t, err)
	require.Equal(t, "b2", last.ID)
	last, err = lastOf(backups[2:3], nil)
	require.NoError(t, err)
	require.Nil(t, last)
	_, err = lastOf(backups, nil)
	require.ErrorContains(t, err, "the newest one, b4, cannot be read: it is torn", "one does not go further back than somebody means")
	require.ErrorIs(t, noBackup(), &fault.Fault{Code: contract.CodeNoBackup})
	require.ErrorIs(t, nothingToResume(), &fault.Fault{Code: contract.CodeNothing})
	require.Equal(t, fault.Usage, fault.ClassOf(noBackup()))
}

// TestARunAtWorkMayMakeABackup: that is why there is nothing to go back to yet, or to go on with.
func TestARunAtWorkMayMakeABackup(t *testing.T) {
	runs := []contract.RunSummary{{ID: "r1", Workflow: "install", Outcome: report.Succeeded}, {ID: "r2", Workflow: "upgrade", Outcome: report.Running}}
	err := atWork(runs, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeHeld})
	require.Equal(t, fault.Locked, fault.ClassOf(err))
	require.ErrorContains(t, err, "run r2, of workflow upgrade, works on the deployment")
	require.NoError(t, atWork(runs[:1], nil))
	gone := errors.New("the engine is gone")
	require.ErrorIs(t, atWork(nil, gone), gone)
}

func TestAnUpgradeHasBegunWithItsBackup(t *testing.T) {
	step := func(status pipeline.Status) *report.Run {
		return &report.Run{Steps: []report.Step{{Stage: "preorchestrator", Step: "backup", Status: status}}}
	}
	require.True(t, conductor.BackedUp(step(pipeline.Succeeded)))
	require.False(t, conductor.BackedUp(step(pipeline.Failed)))
	require.False(t, conductor.BackedUp(&report.Run{}))
}

// TestARollbackFollowsNoPlaceOfABackup: others may write where backups are.
func TestARollbackFollowsNoPlaceOfABackup(t *testing.T) {
	var screen bytes.Buffer
	io := console.Streams{Err: progress.Open(&screen, progress.Options{})}
	was := config.Default()
	was.Platform.Secrets = map[string]config.SecretRef{"admin": "cmd:touch /x"}
	was.Hooks = []config.Hook{{Name: "evil", After: config.WholeWorkflow, Run: []string{"x"}}}
	cfg := config.Default()
	err := new(rollbackOptions).goBack(io, cfg, was, "b1")
	require.ErrorIs(t, err, &fault.Fault{Code: config.CodeNoSecret})
	require.ErrorContains(t, err, "platform.secrets.admin (there from cmd:touch /x)")
	require.Contains(t, screen.String(), "the hook evil of the configuration in backup b1 does not run")
	require.Empty(t, cfg.Hooks)

	was.Platform.Secrets = map[string]config.SecretRef{"admin": "cmd:touch /x"}
	cfg.Platform.Secrets = map[string]config.SecretRef{"admin": "env:ADMIN"}
	require.NoError(t, new(rollbackOptions).goBack(io, cfg, was, "b1"))
	require.Equal(t, config.SecretRef("env:ADMIN"), cfg.Platform.Secrets["admin"])
}
