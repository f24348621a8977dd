package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// someBackups are two of upgrades, one of a rollback, and one that cannot be read.
func someBackups() []contract.BackupSummary {
	at := time.Date(2026, 11, 24, 16, 0, 0, 0, time.UTC)
	return []contract.BackupSummary{
		{ID: "b1", Time: at, Reason: contract.ForUpgrade, From: "1.0.0", To: "1.1.0", Data: []contract.DataSummary{}},
		{ID: "b2", Time: at, Reason: contract.ForUpgrade, From: "1.1.0", To: "1.2.0", Data: []contract.DataSummary{{Name: "entries", Bytes: 120, Check: "3 rows"}, {Name: "words", Bytes: 7, Check: "whole"}}},
		{ID: "b3", Time: at, Reason: contract.ForRollback, From: "1.2.0", To: "1.1.0", Data: []contract.DataSummary{{Name: "entries", Bytes: 130}}},
		{ID: "b4", Problem: "it is torn"},
	}
}

func TestBackupsAreListed(t *testing.T) {
	var out strings.Builder
	require.NoError(t, listBackups(&out, someBackups()))
	require.Equal(t, `BACKUP  TIME (UTC)           BEFORE    FROM   TO     DATA     BYTES  CHECK
b1      2026-11-24 16:00:00  upgrade   1.0.0  1.1.0  -        -      -
b2      2026-11-24 16:00:00  upgrade   1.1.0  1.2.0  entries  120    3 rows
                                                     words    7      whole
b3      2026-11-24 16:00:00  rollback  1.2.0  1.1.0  entries  130    not checked
b4      not usable: it is torn
`, out.String())
	out.Reset()
	require.NoError(t, listBackups(&out, nil))
	require.Equal(t, "there is no backup; an upgrade makes one\n", out.String())
}

func TestOneGoesBackToTheLastUpgrade(t *testing.T) {
	last, err := lastOf(someBackups()[:3])
	require.NoError(t, err)
	require.Equal(t, "b2", last.ID)
	last, err = lastOf(someBackups()[2:3])
	require.NoError(t, err)
	require.Nil(t, last)
	_, err = lastOf(someBackups())
	require.ErrorContains(t, err, "the newest one, b4, cannot be read: it is torn", "one does not go further back than somebody means")
	require.ErrorIs(t, noBackup(), &fault.Fault{Code: contract.CodeNoBackup})
	require.ErrorIs(t, nothingToResume(), &fault.Fault{Code: contract.CodeNothing})
	require.Equal(t, fault.Usage, fault.ClassOf(noBackup()))
}

// atWorkUntil is a deployment on which an upgrade works until a moment; it may leave a backup.
type atWorkUntil struct {
	end  time.Time
	left []contract.BackupSummary
}

func (w atWorkUntil) Runs(context.Context) ([]contract.RunSummary, error) {
	last := contract.RunSummary{ID: "r2", Workflow: "upgrade", Outcome: report.Running}
	if !time.Now().Before(w.end) {
		last.Outcome = report.Interrupted
	}
	return []contract.RunSummary{{ID: "r1", Workflow: "install", Outcome: report.Succeeded}, last}, nil
}

func (w atWorkUntil) Backups(context.Context) ([]contract.BackupSummary, error) {
	if time.Now().Before(w.end) {
		return nil, nil
	}
	return w.left, nil
}

// TestABackupThatARunMayMake is waited for: where an upgrade works on the deployment, that is why
// there is nothing to go back to yet, or to go on with. One that was just killed seems to work for a
// while.
func TestABackupThatARunMayMake(t *testing.T) {
	for name, c := range map[string]struct {
		works, timeout, waits time.Duration
		left                  []contract.BackupSummary
		held                  bool
	}{
		"killed just now, with its backup": {works: lock.DefaultTTL, waits: 21 * time.Second, left: someBackups()[:1]},
		"killed just now, without one":     {works: lock.DefaultTTL, waits: 21 * time.Second},
		"at work":                          {works: time.Hour, timeout: 5 * time.Minute, waits: 5 * time.Minute, held: true},
		"ended in time":                    {works: time.Minute, timeout: 5 * time.Minute, waits: time.Minute, left: someBackups()[:1]},
		"none at work":                     {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, said := time.Now(), 0
				got, err := awaitBackup(t.Context(), atWorkUntil{began.Add(c.works), c.left}, c.timeout, func(string) { said++ })
				require.Equal(t, c.waits, time.Since(began))
				require.Equal(t, c.waits > 0, said == 1)
				if c.held {
					require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeHeld})
					require.Equal(t, fault.Locked, fault.ClassOf(err))
					require.ErrorContains(t, err, "run r2, of workflow upgrade, works on the deployment")
					return
				}
				require.NoError(t, err)
				require.Equal(t, len(c.left) > 0, got != nil)
			})
		})
	}
}

func TestAnUpgradeHasBegunWithItsBackup(t *testing.T) {
	step := func(status pipeline.Status) *report.Run {
		return &report.Run{Steps: []report.Step{{Stage: "preorchestrator", Step: "backup", Status: status}}}
	}
	require.True(t, conductor.BackedUp(step(pipeline.Succeeded)))
	require.False(t, conductor.BackedUp(step(pipeline.Failed)))
	require.False(t, conductor.BackedUp(&report.Run{}))
}

func TestAStyleThatIsNone(t *testing.T) {
	code, _, errs := slipway("upgrade", "--style", "violent")
	require.Equal(t, 2, code)
	require.Contains(t, errs, `--style is "violent"; give graceful or in-place`)
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
