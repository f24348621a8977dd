package deployment

import (
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/cli/internal/hint"
	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
)

// reproduction returns the commands that pack a failed run and reproduce it elsewhere. A run whose
// failed step no install or upgrade has is only packed, for others to look at. It returns nothing for
// a run that was rejected, because its reason is in what the deployment had before.
func (d *Deployment) reproduction(record *report.Run) []string {
	if record.Outcome != report.Failed || record.Exit == fault.Usage || record.Workflow == config.Destroy {
		return nil
	}
	again := stages.Install()
	if record.Workflow == config.Upgrade {
		again = stages.Upgrade()
	}
	steps, err := d.Steps(again)
	if err != nil { // nobody knows then whether another install has the step
		steps = nil
	}
	return reproduction(record, steps, neededSecrets(d.Config), d.Line)
}

// neededSecrets are the variables with the secrets that a run is reproduced with.
func neededSecrets(cfg *config.Config) []string {
	var names []string
	for setting, ref := range cfg.References(nil) { // a reproduction has a provider of its own
		if kind, name := ref.Split(); kind == config.SecretEnv && !strings.HasPrefix(setting, "state.") { // and no bucket
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// reproduction are these commands for a workflow with these steps.
func reproduction(record *report.Run, steps, secrets []string, line hint.Line) []string {
	id := fault.Quote(record.ID)
	pack, run, give := line.Command("save --run "+id+" --out run.tar.zst"), "slipway reproduce --package run.tar.zst", "--secrets FILE"
	if module.Active() { // which hands out no file itself
		pack, run, give = line.Function("save --run "+id)+" export --path run.tar.zst", "dagger call reproduce --package-file run.tar.zst", "--secrets file:FILE"
	}
	_, step := record.Failure()
	if step != "" && !strings.HasPrefix(step, report.HooksStage+"/") && !slices.Contains(steps, step) {
		return []string{pack}
	}
	lines := []string{pack, run}
	if len(secrets) > 0 {
		lines = append(lines, "# with these in the environment, or in the file of "+give+": "+strings.Join(secrets, ", "))
	}
	return lines
}
