package stages

import (
	"encoding/json"
	"slices"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Rollback brings a platform back to the release of a backup.
func Rollback() Workflow { return bringing(config.Rollback) }

// dataFirst wires what an upgrade or rollback does with the data first, and returns what follows that.
func (w *platformWiring) dataFirst(free []pipeline.Dep) []pipeline.Dep {
	switch w.workflow {
	case config.Upgrade:
		return []pipeline.Dep{w.backedUp(free)}
	case config.Rollback:
		return []pipeline.Dep{Add(w.Graph, contract.RestoreStep(), w.restoreInput, free...)}
	}
	return free
}

// backedUp wires the backup of an upgrade, and the migrations before the components.
func (w *platformWiring) backedUp(free []pipeline.Dep) pipeline.Dep {
	var each []*pipeline.Step[contract.BackedUp]
	needs := slices.Clone(free)
	for _, name := range w.Release.DataOn(w.disabled) {
		step := Add(w.Graph, contract.BackupDataStep().Named(contract.StagePreOrchestrator, contract.BackupDataKey(name).Name), func() contract.BackupDataInput {
			return contract.BackupDataInput{PodInput: w.podInput(), Data: name}
		}, free...)
		each, needs = append(each, step), append(needs, step)
	}
	backup := Add(w.Graph, contract.BackupStep(), func() contract.BackupInput {
		in := contract.BackupInput{Style: w.Change.Style, Settings: json.RawMessage(w.Config.Platform.Settings), Data: []contract.BackedUp{}}
		for _, step := range each {
			in.Data = append(in.Data, step.Value())
		}
		return in
	}, needs...)
	return Add(w.Graph, contract.MigrateBeforeStep(), w.migrateInput, backup)
}

// dataLast wires what is done with the data once all components are there; nil: nothing is.
func (w *platformWiring) dataLast(installed []pipeline.Dep) pipeline.Dep {
	switch w.workflow {
	case config.Upgrade:
		return Add(w.Graph, contract.MigrateAfterStep(), w.migrateInput, installed...)
	case config.Rollback:
		return Add(w.Graph, contract.DataCheckStep(), w.restoreInput, installed...)
	}
	return nil
}

func (w *platformWiring) migrateInput() contract.MigrateInput {
	return contract.MigrateInput{PodInput: w.podInput(), Data: w.Release.DataOn(w.disabled)}
}

func (w *platformWiring) restoreInput() contract.RestoreInput {
	return contract.RestoreInput{PodInput: w.podInput(), Backup: w.Change.Backup, Restore: w.Change.Restore}
}

// podInput is all that the files of data's pods may name: a backup's pods may be of another release.
func (w *platformWiring) podInput() contract.PodInput {
	in := contract.PodInput{
		Fill: w.fill(platform.Everywhere()), Images: w.Images, Rewrite: w.Rewrite, Settings: json.RawMessage(w.Config.Platform.Settings), PullSecret: w.Environment.Account != "",
	}
	if w.Environment.OwnsNodes() {
		in.Pods = contract.NodePods
	}
	return in
}
