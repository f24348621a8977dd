package data

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

// bothWays ends the remedy of an upgrade that has begun.
const bothWays = "then go on: slipway upgrade --resume; or go back: slipway rollback"

// waysFrom is bothWays for an upgrade that has come as far as rec says. If a rollback puts the backup
// in the place of data, it says so, and how CI consents: the printed command asks first.
func waysFrom(rec installed.Record, b contract.Backup, target *platform.Release) string {
	if p := wayBack(rec, b, target); len(p.replace) > 0 {
		return bothWays + "; it asks before the backup takes the place of data " + strings.Join(p.replace, " and ") + ", and loses everything written since; without a terminal it requires --yes"
	}
	return bothWays
}

func migrateBefore(ctx context.Context, env *step.Env, in contract.MigrateInput) (contract.Migrated, error) {
	w, err := open(ctx, env, in.PodInput)
	if err != nil {
		return contract.Migrated{}, err
	}
	readiness.AwaitPods(ctx, w.client, in.Pods) // an upgrade that goes on has made no backup before
	out, _, err := w.migrate(ctx, platform.Before, in.Data)
	return out, err
}

// migrateAfter carries out the migrations after the components were brought to the release,
// and then checks the data against the backup.
func migrateAfter(ctx context.Context, env *step.Env, in contract.MigrateInput) (contract.Migrated, error) {
	w, err := open(ctx, env, in.PodInput)
	if err != nil {
		return contract.Migrated{}, err
	}
	out, b, err := w.migrate(ctx, platform.After, in.Data)
	if err != nil {
		return out, err
	}
	out.Checks, err = w.checkData(ctx, b, in.Data, "correct the cause, "+w.next)
	return out, err
}

// migrate carries out the migrations of a moment that the upgrade has not carried out yet, of
// the data that it has backed up. It notes each in the cluster, when it begins and when it is
// done, and returns the backup of the upgrade.
func (w *work) migrate(ctx context.Context, when platform.When, data []string) (contract.Migrated, contract.Backup, error) {
	w.next = bothWays
	out := contract.Migrated{Migrations: []string{}}
	rec, err := installed.Read(ctx, w.client)
	if err != nil {
		return out, contract.Backup{}, err
	}
	if !resumes(rec, w.release) { // the step before has seen to it
		return out, contract.Backup{}, fmt.Errorf("the upgrade to %s has no backup; the cluster says that it is at %q, toward %q", w.release.Version, rec.Version, rec.Toward)
	}
	b, err := w.repo.Get(ctx, rec.Backup)
	if err != nil {
		return out, b, err
	}
	data = slices.DeleteFunc(slices.Clone(data), func(name string) bool { return backedUp(b, name).Absent })
	due := w.release.MigrationsFrom(rec.Version, when, data)
	if err := w.clear(ctx); err != nil {
		return out, b, err
	}
	if err := w.start(ctx, data); err != nil { // whom a run that was killed has left stopped
		return out, b, err
	}
	for _, m := range due {
		if rec.Has(m.Name) {
			out.Migrations = append(out.Migrations, m.Name)
			continue
		}
		d, err := w.dataNamed(m.Data)
		if err != nil {
			return out, b, err
		}
		err = w.stoppedInPlace(ctx, rec.Style, d, func(ctx context.Context) error {
			rec = rec.Note(m.Name, false)
			w.next = waysFrom(rec, b, w.release)
			if err := rec.Keep(ctx, w.client, w.env.Deployment); err != nil {
				return err
			}
			w.env.Progress("migrating %s: %s", d.Name, m.Name)
			return w.within(ctx, d, false, func(ctx context.Context, p runningPod) error { return p.run(ctx, m.Command, nil, nil) })
		})
		if err != nil {
			op := fmt.Sprintf("carry out migration %s of data %s", m.Name, d.Name)
			return out, b, because(CodeMigration, op, "correct the cause, "+w.next, err)
		}
		rec = rec.Note(m.Name, true)
		if err := rec.Keep(ctx, w.client, w.env.Deployment); err != nil {
			return out, b, err
		}
		out.Migrations = append(out.Migrations, m.Name)
	}
	w.env.Progress("%d migrations %s the components", len(due), when)
	return out, b, nil
}

// checkData checks the data as it is now, against what the check printed for the backup.
func (w *work) checkData(ctx context.Context, b contract.Backup, data []string, fix string) (map[string]string, error) {
	checks := map[string]string{}
	for _, name := range data {
		saved := backedUp(b, name)
		if saved.Absent {
			continue
		}
		d, err := w.dataNamed(name)
		if err != nil {
			return checks, err
		}
		err = w.within(ctx, d, false, func(ctx context.Context, p runningPod) (err error) {
			checks[name], err = p.check(ctx, saved.Check)
			return err
		})
		if err != nil {
			op := "check data " + name + " against its backup, of which the check said: " + saved.Check
			return checks, because(CodeCheck, op, fix, err)
		}
		w.env.Progress("%s is whole: %s", name, checks[name])
	}
	return checks, nil
}

func (w *work) undo(ctx context.Context, m platform.Migration) error {
	d, err := w.dataNamed(m.Data)
	if err != nil {
		return err
	}
	w.env.Progress("taking back migration %s of %s", m.Name, d.Name)
	err = w.within(ctx, d, false, func(ctx context.Context, p runningPod) error { return p.run(ctx, m.Undo, nil, nil) })
	if err == nil {
		return nil
	}
	return &fault.Fault{
		Code: CodeMigration, Class: step.ClassOf(err), Op: fmt.Sprintf("take back migration %s of data %s", m.Name, d.Name), Err: err,
		Fix: "correct the cause, " + w.next,
	}
}
