package deployment

import (
	"cmp"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/cli/internal/hint"
	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
)

// Reproduction returns the commands that reproduce a failed run elsewhere, from the package in file;
// empty: the first command packs the run. A run whose failed step no install or upgrade has is
// only packed, for others to look at. It returns nothing for a run that was rejected, because its
// reason is in what the deployment had before.
func (d *Deployment) Reproduction(record *report.Run, file string) []string {
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
	return reproduction(record, steps, file, neededSecrets(d.Config), d.Line)
}

// PackByModule is the command that packs a run of the module, which hands out no file itself.
func PackByModule(record *report.Run, line hint.Line) string {
	return line.Function("save --run "+fault.Quote(record.ID)) + " export --path run.tar.zst"
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

// reproduction is Reproduction for a workflow with these steps.
func reproduction(record *report.Run, steps []string, file string, secrets []string, line hint.Line) []string {
	pack, run, give := line.Command("save --run "+fault.Quote(record.ID)+" --out run.tar.zst"), "slipway reproduce --package ", "--secrets FILE"
	if module.Active() { // whose files nobody else has
		file, pack, run, give = "", PackByModule(record, line), "dagger call reproduce --package-file ", "--secrets file:FILE"
	}
	var lines []string
	if file == "" {
		lines = append(lines, pack)
	}
	_, step := record.Failure()
	if step != "" && !strings.HasPrefix(step, report.HooksStage+"/") && !slices.Contains(steps, step) {
		return lines
	}
	lines = append(lines, run+fault.Quote(cmp.Or(file, "run.tar.zst")))
	if len(secrets) > 0 {
		lines = append(lines, "# with these in the environment, or in the file of "+give+": "+strings.Join(secrets, ", "))
	}
	return lines
}
