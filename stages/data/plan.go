package data

import (
	"cmp"
	"context"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/step"
)

// look is open for a plan, which looks at backups only where an upgrade goes on.
func look(env *step.Env, in contract.PodInput) (*work, error) {
	r, c, err := env.Open()
	if err != nil {
		return nil, err
	}
	return &work{env: env, client: c, release: r, in: in, next: "then run the same command again"}, nil
}

func planBackUp(ctx context.Context, env *step.Env, in contract.BackupDataInput) (contract.BackedUp, error) {
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
	b := contract.PlannedChange{Of: contract.PlanBackups, Action: contract.PlanRun, Name: in.Data}
	if resumes(rec, w.release) {
		b.Note = "exists already, as " + rec.Backup
	}
	env.Plan.Note(b)
	return out, nil
}

// has reports whether the upgrade has data to keep; if the upgrade goes on, its backup says so.
func (w *work) has(ctx context.Context, rec installed.Record, name string) (bool, error) {
	if resumes(rec, w.release) && rec.Backup != w.env.Run { // else the plan itself has noted it
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

// planComplete notes, for the steps after it, that the upgrade has its backup.
func planComplete(ctx context.Context, env *step.Env, in contract.BackupInput) (contract.BackupSummary, error) {
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
	env.Plan.Note(contract.PlannedStyle(rec.Style))
	return out, err
}

func planMigrateBefore(ctx context.Context, env *step.Env, in contract.MigrateInput) (contract.Migrated, error) {
	return planMigrate(ctx, env, in, platform.Before)
}

func planMigrateAfter(ctx context.Context, env *step.Env, in contract.MigrateInput) (contract.Migrated, error) {
	return planMigrate(ctx, env, in, platform.After)
}

// planMigrate tells which migrations of a moment would be carried out, and what they stop.
func planMigrate(ctx context.Context, env *step.Env, in contract.MigrateInput, when platform.When) (contract.Migrated, error) {
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
		planned := contract.PlannedChange{Of: contract.PlanMigrations, Action: contract.PlanRun, Name: m.Name + " of " + m.Data, Note: string(m.When) + " the components"}
		var stops []string
		if rec.Style == contract.InPlace {
			err := w.users([]string{m.Data}, func(u platform.User) error {
				live, err := w.workload(ctx, u)
				if live != nil {
					stops = append(stops, u.String())
				}
				return err
			})
			if err != nil {
				return out, err
			}
		}
		if len(stops) > 0 {
			planned.Note += "; stopped meanwhile: " + strings.Join(stops, ", ")
		}
		if m.Undo == nil {
			planned.Note += "; only the backup leads back"
			planned.Destroys = "migration " + planned.Name + " cannot be taken back: a rollback puts the backup in the place of the data"
		}
		env.Plan.Note(planned)
	}
	return out, nil
}
