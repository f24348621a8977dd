package incontainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// TestNothingToResume: the records tell it after runs that do not say what the cluster has, too.
func TestNothingToResume(t *testing.T) {
	backup := contract.BackupStep().Key
	run := func(workflow string, outcome report.Outcome, backedUp pipeline.Status) report.Run {
		step := report.Step{Stage: backup.Stage, Step: backup.Name, Status: backedUp}
		if backedUp != "" {
			step.Started = time.Now()
		}
		return report.Run{Workflow: workflow, Outcome: outcome, Platform: report.Platform{Name: "shop", Version: "2.0.0"},
			Steps: []report.Step{{Stage: "preorchestrator", Step: "namespaces", Status: pipeline.Failed}, step}}
	}
	upgraded, begun := run(config.Upgrade, report.Succeeded, pipeline.Succeeded), run(config.Upgrade, report.Failed, pipeline.Succeeded)
	back, halfBack := run(config.Rollback, report.Succeeded, ""), run(config.Rollback, report.Failed, "")
	for name, c := range map[string]struct {
		runs    []report.Run
		nothing bool
	}{
		"after a rollback":                        {[]report.Run{upgraded, back}, true},
		"after a rollback from the middle":        {[]report.Run{begun, back}, true},
		"after an install that failed":            {[]report.Run{upgraded, run(config.Install, report.Failed, "")}, true},
		"after an upgrade that made no backup":    {[]report.Run{upgraded, run(config.Upgrade, report.Failed, "")}, true},
		"after one that may have made it":         {[]report.Run{upgraded, run(config.Upgrade, report.Failed, pipeline.Failed)}, false},
		"after tests":                             {[]report.Run{back, run(config.Test, report.Failed, "")}, true},
		"after an install":                        {[]report.Run{back, run(config.Install, report.Succeeded, ""), run(config.Install, report.Failed, "")}, true},
		"in the middle":                           {[]report.Run{back, begun, run(config.Install, report.Failed, "")}, false},
		"in the middle of a rollback":             {[]report.Run{begun, halfBack}, false},
		"after a rollback that failed, as a rule": {[]report.Run{upgraded, halfBack}, false},
		"of which no upgrade is known":            {[]report.Run{run(config.Install, report.Failed, "")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := locked(t, "r1")
			var id string
			for i, r := range c.runs {
				id = fmt.Sprintf("20260102-03040%d-a1b2c3", i)
				r.ID = id
				record, err := r.Encode()
				require.NoError(t, err)
				require.NoError(t, state.Keep(t.Context(), s.store, id, map[string][]byte{report.RecordFile: record}))
			}
			require.NoError(t, state.PutLatest(t.Context(), s.store, 1, id))
			require.NoError(t, state.PutRuntime(t.Context(), s.store, 1, contract.RuntimeState{Deployment: "demo", Platform: "1.0.0", Run: id}))
			text, err := json.Marshal(contract.Over{Platform: "shop", Version: "2.0.0", Upgrade: true, UpgradableFrom: []string{"1.0.0"}, Change: contract.Change{Resume: true}})
			require.NoError(t, err)
			err = s.Open(t.Context(), filepath.Join(t.TempDir(), "opened.json"), "r1", "demo", string(text))
			if c.nothing {
				require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeNothing})
				return
			}
			require.NoError(t, err)
		})
	}
}

// TestWhatTheRecordsRefuse: a run that the cluster would refuse is so before hooks run and the
// cluster is started, and an upgrade goes on with the release that it was begun with.
func TestWhatTheRecordsRefuse(t *testing.T) {
	const id = "20260102-030405-a1b2c3"
	backup := contract.BackupStep().Key
	run := func(workflow, version string, outcome report.Outcome, backedUp pipeline.Status) report.Run {
		return report.Run{
			ID: id, Workflow: workflow, Outcome: outcome, Platform: report.Platform{Name: "shop", Version: version},
			Steps: []report.Step{{Stage: backup.Stage, Step: backup.Name, Status: backedUp}},
		}
	}
	installs := run(config.Install, "1.0.0", report.Succeeded, "")
	between := run(config.Upgrade, "2.0.0", report.Failed, pipeline.Succeeded)
	fromDir := between
	fromDir.Platform.From = "../my shop"
	over := func(version string, upgrade bool, change contract.Change, from ...string) contract.Over {
		return contract.Over{Platform: "shop", Version: version, UpgradableFrom: from, Upgrade: upgrade, Change: change}
	}
	none := contract.Change{}
	for name, c := range map[string]struct {
		last report.Run
		over contract.Over
		lost bool
		code fault.Code
		fix  string
	}{
		"the same":                            {last: installs, over: over("1.0.0", false, none)},
		"an upgrade to the same":              {last: installs, over: over("1.0.0", true, none), code: platform.CodeSame},
		"an older one":                        {last: installs, over: over("0.9.0", false, none), code: installed.CodeNotOver},
		"what does not follow":                {last: installs, over: over("3.0.0", true, none, "2.0.0"), code: installed.CodeNotOver},
		"nothing to resume":                   {last: installs, over: over("2.0.0", true, contract.Change{Resume: true}, "1.0.0"), code: contract.CodeNothing},
		"the next one":                        {last: installs, over: over("2.0.0", true, none, "1.0.0")},
		"an install in the middle":            {last: between, over: over("2.0.0", false, none, "1.0.0"), code: installed.CodeUnfinished, fix: "with the --platform that it was begun with, if any: slipway upgrade --resume;"},
		"one in the middle, of a directory":   {last: fromDir, over: over("2.0.0", false, none, "1.0.0"), code: installed.CodeUnfinished, fix: "go on with it: slipway upgrade --resume --platform '../my shop'; or go back to 1.0.0: slipway rollback"},
		"back in the middle":                  {last: fromDir, over: over("1.0.0", false, none), code: installed.CodeUnfinished, fix: "slipway upgrade --resume --platform '../my shop';"},
		"the upgrade goes on":                 {last: between, over: over("2.0.0", true, contract.Change{Resume: true, Style: "in-place"}, "1.0.0")},
		"a cluster that is lost":              {last: between, over: over("1.0.0", false, none), lost: true},
		"an upgrade that had no backup":       {last: run(config.Upgrade, "2.0.0", report.Failed, pipeline.Failed), over: over("1.0.0", false, none)},
		"an install that has failed":          {last: run(config.Install, "1.0.0", report.Failed, ""), over: over("0.9.0", false, none)},
		"a rollback, which the cluster knows": {last: run(config.Rollback, "0.9.0", report.Failed, ""), over: over("0.9.0", false, none)},
	} {
		t.Run(name, func(t *testing.T) {
			s := locked(t, "r1")
			record, err := c.last.Encode()
			require.NoError(t, err)
			require.NoError(t, state.Keep(t.Context(), s.store, id, map[string][]byte{report.RecordFile: record}))
			require.NoError(t, state.PutLatest(t.Context(), s.store, 1, id))
			require.NoError(t, state.PutRuntime(t.Context(), s.store, 1, contract.RuntimeState{Deployment: "demo", Platform: "1.0.0", Run: id}))
			if c.lost {
				require.NoError(t, s.store.Put(t.Context(), "secrets/kubeconfig", []byte("k")))
			}
			text, err := json.Marshal(c.over)
			require.NoError(t, err)
			err = s.Open(t.Context(), filepath.Join(t.TempDir(), "opened.json"), "r1", "demo", string(text))
			if c.code == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, &fault.Fault{Code: c.code})
			f, _ := errors.AsType[*fault.Fault](err)
			require.Equal(t, fault.Usage, f.Class)
			require.Contains(t, f.Fix, c.fix)
		})
	}
}
