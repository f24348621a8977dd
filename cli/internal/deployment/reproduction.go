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
	return reproduction(record, steps, file, secretsOf(d.secretsFile, d.Config), d.Line)
}

// PackByModule is the command that packs a run of the module, which hands out no file itself.
func PackByModule(record *report.Run, line hint.Line) string {
	return line.Function("save --run "+fault.Quote(record.ID)) + " export --path run.tar.zst"
}

// neededSecrets are the secrets that a run is reproduced with.
type neededSecrets struct {
	file  string   // of --secrets; empty: none was given
	names []string // of the variables that the configuration refers to
}

func secretsOf(file string, cfg *config.Config) neededSecrets {
	n := neededSecrets{file: file}
	for setting, ref := range cfg.References(nil) { // a reproduction has a provider of its own
		if kind, name := ref.Split(); kind == config.SecretEnv && !strings.HasPrefix(setting, "state.") { // and no bucket
			n.names = append(n.names, name)
		}
	}
	slices.Sort(n.names)
	n.names = slices.Compact(n.names)
	return n
}

// reproduction is Reproduction for a workflow with these steps.
func reproduction(record *report.Run, steps []string, file string, secrets neededSecrets, line hint.Line) []string {
	given := secrets.file != "" && len(secrets.names) > 0
	pack, run, give := line.Command("save --run "+fault.Quote(record.ID)+" --out run.tar.zst"), "slipway reproduce --package ", "--secrets FILE"
	if given {
		run = "slipway reproduce --secrets " + fault.Quote(secrets.file) + " --package "
	}
	if module.Active() { // whose files nobody else has
		file, pack, run, give = "", PackByModule(record, line), "dagger call reproduce --package-file ", "--secrets file:FILE"
		if given {
			run = "dagger call " + give + " reproduce --package-file "
		}
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
	if secrets.file == "" && len(secrets.names) > 0 {
		lines = append(lines, "# with these in the environment, or in the file of "+give+": "+strings.Join(secrets.names, ", "))
	}
	return lines
}
