package conductor

import (
	"errors"
	"slices"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// installs reports whether a workflow brings a deployment to a release.
func installs(workflow string) bool {
	return slices.Contains([]string{config.Install, config.Upgrade, config.Rollback}, workflow)
}

// BackedUp reports whether the run of an upgrade has come as far as its backup: only then is
// there something to go on with, or to go back from.
func BackedUp(r *report.Run) bool {
	return slices.ContainsFunc(r.Steps, func(s report.Step) bool {
		return s.ID() == contract.BackupStep().String() && s.Status.OK()
	})
}

// refuses reports whether an install in which a step failed has changed nothing yet: those of
// the stage infrastructure find out whether it may and can be.
func refuses(stage string, err error) bool {
	f, ok := errors.AsType[*fault.Fault](err)
	return ok && stage == contract.StageInfrastructure && (f.Class == fault.Usage || f.Class == fault.Preflight)
}

// allRefuse reports whether each step that failed refuses the run.
func allRefuse(results []pipeline.Result) bool {
	return !slices.ContainsFunc(results, func(r pipeline.Result) bool {
		return r.Status == pipeline.Failed && !refuses(r.Stage, r.Err)
	})
}

// Refusal is why an install was refused before it had changed anything; nil for other runs.
func Refusal(r *report.Run) *contract.Refusal {
	if !installs(r.Workflow) || r.Outcome != report.Failed || r.Fault == nil {
		return nil
	}
	some := false
	for _, s := range r.Steps {
		if s.Status != pipeline.Failed {
			continue
		}
		if s.Fault == nil || !refuses(s.Stage, s.Fault) {
			return nil
		}
		some = true
	}
	if !some {
		return nil
	}
	return &contract.Refusal{Run: r.ID, Workflow: r.Workflow, Code: r.Fault.Code, Error: r.Fault.Error()}
}
