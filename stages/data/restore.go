package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

// againRollback is the command that runs a rollback again, or goes back to the same backup.
func againRollback(b contract.Backup) string { return "slipway rollback --backup " + fault.Quote(b.ID) }

// restore brings the data back to what the release of a backup works with: migrations that
// were begun are taken back where each can be, otherwise the backup takes the place of the
// data, which is backed up before.
func restore(ctx context.Context, env *step.Env, in contract.RestoreInput) (contract.Restored, error) {
	w, b, err := openBackup(ctx, env, in)
	if err != nil {
		return contract.Restored{}, err
	}
	readiness.AwaitPods(ctx, w.client, in.Pods)
	rec, err := installed.Read(ctx, w.client)
	if err != nil {
		return contract.Restored{}, err
	}
	p := wayBack(rec, b, w.release)
	again := rec.Rollback == b.ID
	if err := p.allowed(in.Restore || rec.Saved != "", again, b, w.release); err != nil {
		return contract.Restored{}, err
	}
	if err := w.stoppable(ctx, p.replace); err != nil { // before there is a rollback that has to be brought to its end
		return contract.Restored{}, err
	}
	rec.Rollback = b.ID
	if err := rec.Keep(ctx, w.client, env.Deployment); err != nil {
		return contract.Restored{}, err
	}
	if err := w.clear(ctx); err != nil {
		return contract.Restored{}, err
	}
	w.held = slices.Clone(p.replace)            // nobody writes to what may have been saved, and is to be replaced
	if err := w.start(ctx, p.all); err != nil { // whom a run that was killed has left stopped
		return contract.Restored{}, err
	}
	var out contract.Restored
	for _, m := range p.undo {
		d, err := w.dataNamed(m.Data)
		if err != nil {
			return out, err
		}
		if err := w.stoppedInPlace(ctx, rec.Style, d, func(ctx context.Context) error { return w.undo(ctx, m) }); err != nil {
			return out, err
		}
		rec = rec.Forget(m.Name)
		if err := rec.Keep(ctx, w.client, env.Deployment); err != nil {
			return out, err
		}
		out.Undone = append(out.Undone, m.Name)
	}
	for _, name := range p.replace {
		var saved bool
		// The first rollback fails if the data cannot be saved; the second one replaces it all the same.
		if rec, saved, err = w.replace(ctx, rec, b, name, again && in.Restore); err != nil {
			return out, err
		}
		if !saved {
			out.Unsaved = append(out.Unsaved, name)
		}
		out.Restored, out.Saved = append(out.Restored, name), rec.Saved
	}
	env.Progress("%d migrations taken back, %d data restored", len(out.Undone), len(out.Restored))
	return out, nil
}

// openBackup prepares a step on the data of a backup, with the commands of the release to
// which the platform was brought after it.
func openBackup(ctx context.Context, env *step.Env, in contract.RestoreInput) (*work, contract.Backup, error) {
	w, err := open(ctx, env, in.PodInput)
	if err != nil {
		return nil, contract.Backup{}, err
	}
	b, err := w.repo.Get(ctx, in.Backup)
	if err != nil {
		return nil, b, err
	}
	if b.Settings != nil { // those at hand are of the release to go back to
		w.in.Settings = b.Settings
	}
	w.next = "then run again: " + againRollback(b)
	if b.Target == nil {
		return nil, b, backup.DataOnly(b.ID)
	}
	archive, err := w.repo.Archive(ctx, backup.TargetKey(b.ID, b.TargetDigest), *b.Target)
	if err != nil {
		return nil, b, err
	}
	w.release, err = backup.Release(archive)
	return w, b, err
}

// way is how data goes back to a release.
type way struct {
	all     []string             // data of the backup
	undo    []platform.Migration // that were begun, the last one first
	replace []string             // data of which a migration cannot be taken back
	why     []string             // that is so
}

// wayBack finds how the data goes back to the release of a backup. target is the release to
// which the platform was brought after it. What the rollback has replaced already is left
// alone: it may have been written to since.
func wayBack(rec installed.Record, b contract.Backup, target *platform.Release) way {
	var out way
	for _, d := range b.Data {
		if !d.Absent {
			out.all = append(out.all, d.Name)
		}
	}
	if rec.Backup != b.ID { // what became of the data since is not known
		out.replace = out.all
		if len(out.all) > 0 {
			out.why = []string{"other upgrades came after backup " + b.ID}
		}
		return out.without(rec.Replaced)
	}
	for _, done := range slices.Backward(rec.Migrations) {
		i := slices.IndexFunc(target.Migrations, func(m platform.Migration) bool { return m.Name == done.Name })
		if i < 0 { // of which data it was is not known any more
			out.replace, out.why = out.all, []string{"the release has the migration " + done.Name + " no more"}
			break
		}
		if len(target.Migrations[i].Undo) == 0 && !slices.Contains(out.replace, target.Migrations[i].Data) {
			out.replace = append(out.replace, target.Migrations[i].Data)
			out.why = append(out.why, "migration "+done.Name+" cannot be taken back")
		}
	}
	for _, done := range slices.Backward(rec.Migrations) {
		i := slices.IndexFunc(target.Migrations, func(m platform.Migration) bool { return m.Name == done.Name })
		if i >= 0 && !slices.Contains(out.replace, target.Migrations[i].Data) {
			out.undo = append(out.undo, target.Migrations[i])
		}
	}
	return out.without(rec.Replaced)
}

// without is the way that leaves data alone which is replaced already.
func (p way) without(replaced []string) way {
	p.replace = slices.DeleteFunc(slices.Clone(p.replace), func(name string) bool { return slices.Contains(replaced, name) })
	return p
}

// allowed returns a fault if data would be replaced without consent, by a rollback that is
// run again or not. target is as in plan.
func (p way) allowed(consent, again bool, b contract.Backup, target *platform.Release) error {
	if len(p.replace) == 0 || consent {
		return nil
	}
	in := "in a backup of its own only"
	if again {
		in += ", or in none if it cannot be dumped"
	}
	var users []string
	for _, name := range p.replace {
		d, _ := target.DataNamed(name)
		users = append(users, d.Users...)
	}
	if len(users) > 0 {
		in += "; meanwhile it stops " + strings.Join(slices.Compact(slices.Sorted(slices.Values(users))), ", ")
	}
	return &fault.Fault{
		Code: contract.CodeConsent, Class: fault.Usage, Op: "roll back to backup " + b.ID,
		Err: fmt.Errorf("%s: the backup of %s would replace data %s, and everything written since would be %s; nothing was changed",
			strings.Join(p.why, ", "), b.Time.Format(time.DateTime+" UTC"), strings.Join(p.replace, ", "), in),
		Fix: "if that is wanted: " + againRollback(b) + " --yes",
	}
}

// replace saves data, puts the backup in its place, and checks it. In every style its users are
// stopped meanwhile, and stay so if that fails: what they wrote in between would be nowhere.
// unsaved allows it to replace what cannot be saved; isSaved tells whether it was.
func (w *work) replace(ctx context.Context, rec installed.Record, b contract.Backup, name string, unsaved bool) (_ installed.Record, isSaved bool, _ error) {
	d, err := w.dataNamed(name)
	if err != nil {
		return rec, false, err
	}
	saved, key := backedUp(b, name), backup.DataKey(b.ID, name)
	// All of it is read before any of it is restored: a command that is given only a part
	// takes that for the whole.
	if _, err := io.Copy(io.Discard, w.repo.Reader(ctx, key, saved.Blob)); err != nil {
		return rec, false, err
	}
	before := rec.Saved
	if err = w.stopUsers(ctx, d); err == nil {
		rec, isSaved, err = w.save(ctx, rec, b, d, unsaved)
	}
	if err != nil && before == "" { // nothing of any data was replaced yet
		w.held = nil
		err = errors.Join(err, w.startUsers(ctx, d))
	}
	stay := ""
	if len(d.Users) > 0 {
		stay = strings.Join(d.Users, ", ") + " stays stopped until then: "
	}
	op := "restore data " + name + " from backup " + b.ID
	if err != nil {
		if before == "" {
			stay = ""
		}
		return rec, isSaved, because(CodeRestore, op, stay+"correct the cause, "+w.next, err)
	}
	w.env.Progress("restoring %s from backup %s", name, b.ID)
	err = w.within(ctx, d, false, func(ctx context.Context, p runningPod) error {
		err := p.run(ctx, d.Restore, w.repo.Reader(ctx, key, saved.Blob), nil)
		if err == nil {
			_, err = p.check(ctx, saved.Check)
		}
		return err
	})
	if err != nil {
		return rec, isSaved, because(CodeRestore, op, stay+"correct the cause, "+w.next, err)
	}
	for _, m := range w.release.Migrations {
		if m.Data == name {
			rec = rec.Forget(m.Name)
		}
	}
	rec.Replaced = append(slices.Clone(rec.Replaced), name)
	if err := rec.Keep(ctx, w.client, w.env.Deployment); err != nil { // before anybody writes: it is not replaced again
		return rec, isSaved, err
	}
	w.held = slices.DeleteFunc(w.held, func(held string) bool { return held == name })
	return rec, isSaved, w.startUsers(ctx, d)
}

// save adds present data to the backup of what the rollback replaces, once: after that it may
// be half restored. It is not proved: it may be empty or half migrated. unsaved and isSaved are
// as in replace.
func (w *work) save(ctx context.Context, rec installed.Record, b contract.Backup, d platform.Data, unsaved bool) (_ installed.Record, isSaved bool, _ error) {
	own := contract.Backup{
		ID: w.env.Run, Time: time.Now().UTC().Truncate(time.Second), Reason: contract.ForRollback, Platform: b.Platform,
		From: cmp.Or(rec.Toward, rec.Version), To: b.From,
	}
	var err error
	if rec.Saved == "" {
		err = w.repo.Sweep(ctx, own.ID)
	} else {
		own, err = w.repo.Get(ctx, rec.Saved)
	}
	if err != nil || !backedUp(own, d.Name).Absent {
		return rec, err == nil, err
	}
	w.env.Progress("backing up the present %s", d.Name)
	var blob contract.Blob
	err = w.within(ctx, d, false, func(ctx context.Context, p runningPod) (err error) {
		fix := "correct the cause, " + w.next + "; to replace the data without a backup of it: " + againRollback(b) + " --yes"
		blob, err = p.dump(ctx, backup.DataKey(own.ID, d.Name), fix)
		return err
	})
	if err != nil && unsaved && ctx.Err() == nil {
		w.env.Logger.Warn("the present data is replaced without a backup of it", "data", d.Name, "error", err)
		return rec, false, nil
	} else if err != nil {
		return rec, false, err
	}
	own.Data = append(own.Data, contract.BackedUp{Name: d.Name, Blob: blob})
	if err := w.repo.Put(ctx, own); err != nil {
		return rec, false, err
	}
	w.env.Progress("the present %s is in backup %s", d.Name, own.ID)
	if rec.Saved == own.ID {
		return rec, true, nil
	}
	rec.Saved = own.ID
	if err := rec.Keep(ctx, w.client, w.env.Deployment); err != nil {
		return rec, true, err
	}
	_, err = w.repo.Retain(ctx, w.release.Retain(), own.ID, b.ID, rec.Backup)
	return rec, true, err
}

// checkAll checks the data after a rollback. With consent a check that fails is only reported: users
// may have removed rows since the backup.
func checkAll(ctx context.Context, env *step.Env, in contract.RestoreInput) (contract.Migrated, error) {
	out := contract.Migrated{Migrations: []string{}, Checks: map[string]string{}}
	w, b, err := openBackup(ctx, env, in)
	if err != nil {
		return out, err
	}
	fix := "correct the cause, " + w.next + "; if the data is right as it is: " + againRollback(b) + " --yes"
	for _, d := range b.Data {
		checks, err := w.checkData(ctx, b, []string{d.Name}, fix)
		switch {
		case err == nil:
			maps.Copy(out.Checks, checks)
		case in.Restore && ctx.Err() == nil && errors.Is(err, &fault.Fault{Code: CodeCheck}):
			env.Logger.Warn("the check of data fails", "data", d.Name, "error", err)
			out.Failed = append(out.Failed, d.Name)
		default:
			return out, err
		}
	}
	return out, nil
}
