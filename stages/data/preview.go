package data

import (
	"cmp"
	"context"
	"os"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// look is open for a preview, which looks at backups only where an upgrade goes on.
func look(env *step.Env, in contract.PodInput) (*work, error) {
	r, err := platform.Load(os.DirFS(env.PlatformDir))
	if err != nil {
		return nil, err
	}
	c, err := kube.Connect(env.Kubeconfig, env.Progress)
	if err != nil {
		return nil, err
	}
	return &work{env: env, client: c, release: r, in: in, exec: kubectl(env), next: "then run the same command again"}, nil
}

// previewBackUp tells whether data would be backed up.
func previewBackUp(ctx context.Context, env *step.Env, in contract.BackupDataInput) (contract.BackedUp, error) {
	out := contract.BackedUp{Name: in.Data}
	w, err := look(env, in.PodInput)
	if err != nil {
		return out, err
	}
	rec, err := installed.Read(ctx, w.client)
	if err != nil {
		return out, err
	}
	there, err := w.has(ctx, rec, in.Data)
	if err != nil || !there {
		out.Absent = true
		return out, err
	}
	b := contract.PlannedBackup{Data: in.Data}
	if resumes(rec, w.release) {
		b.Made = rec.Backup
	}
	dryrun.Tell(ctx, b)
	return out, nil
}

// has tells whether the upgrade has data to keep: of one that goes on its backup says so.
func (w *work) has(ctx context.Context, rec installed.Record, name string) (bool, error) {
	if resumes(rec, w.release) && rec.Backup != w.env.Run { // else the preview itself has noted it
		repo, err := openRepository(ctx, w.env)
		if err != nil {
			return false, err
		}
		b, err := repo.Get(ctx, rec.Backup)
		return !backedUp(b, name).Absent, err
	}
	d, err := w.dataNamed(name)
	if err != nil {
		return false, err
	}
	return w.there(ctx, d)
}

// previewComplete notes, for the steps after it, that the upgrade has its backup.
func previewComplete(ctx context.Context, env *step.Env, in contract.BackupInput) (contract.BackupSummary, error) {
	out := contract.BackupSummary{ID: env.Run, Reason: contract.ForUpgrade, Data: []contract.DataSummary{}}
	w, err := look(env, contract.PodInput{})
	if err != nil {
		return out, err
	}
	rec, err := installed.Read(ctx, w.client)
	if err != nil {
		return out, err
	}
	out.From, out.To = rec.Version, w.release.Version
	if resumes(rec, w.release) {
		out.ID = rec.Backup
	} else {
		rec = installed.Record{
			Platform: w.release.Name, Version: rec.Version, Toward: w.release.Version, Backup: env.Run, Style: cmp.Or(in.Style, contract.Graceful),
		}
		err = rec.Keep(ctx, w.client, env.Deployment)
	}
	dryrun.Tell(ctx, contract.PlannedStyle(rec.Style))
	return out, err
}

func previewMigrateBefore(ctx context.Context, env *step.Env, in contract.MigrateInput) (contract.Migrated, error) {
	return previewMigrate(ctx, env, in, platform.Before)
}

func previewMigrateAfter(ctx context.Context, env *step.Env, in contract.MigrateInput) (contract.Migrated, error) {
	return previewMigrate(ctx, env, in, platform.After)
}

// previewMigrate tells which migrations of a moment would be carried out, and what they stop.
func previewMigrate(ctx context.Context, env *step.Env, in contract.MigrateInput, when platform.When) (contract.Migrated, error) {
	out := contract.Migrated{Migrations: []string{}}
	w, err := look(env, in.PodInput)
	if err != nil {
		return out, err
	}
	rec, err := installed.Read(ctx, w.client)
	if err != nil {
		return out, err
	}
	var data []string
	for _, name := range in.Data {
		there, err := w.has(ctx, rec, name)
		if err != nil {
			return out, err
		}
		if there {
			data = append(data, name)
		}
	}
	for _, m := range w.release.MigrationsFrom(rec.Version, when, data) {
		out.Migrations = append(out.Migrations, m.Name)
		if rec.Has(m.Name) {
			continue
		}
		d, err := w.dataNamed(m.Data)
		if err != nil {
			return out, err
		}
		planned := contract.PlannedMigration{Name: m.Name, Data: m.Data, When: string(m.When), Undo: m.Undo != nil}
		for _, text := range d.Users {
			u, err := platform.ParseUser(text)
			if err != nil || rec.Style != contract.InPlace {
				break
			}
			live, err := w.workload(ctx, u)
			if err != nil {
				return out, err
			}
			if live != nil {
				planned.Stops = append(planned.Stops, text)
			}
		}
		dryrun.Tell(ctx, planned)
	}
	return out, nil
}
