package data

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

// againUpgrade ends the remedy of what fails before anything of the platform was changed.
const againUpgrade = "then upgrade again; nothing of the platform was changed"

// backUp dumps data, restores the dump beside it and checks it there. It does nothing for an
// upgrade that goes on: that has its backup.
func backUp(ctx context.Context, env *step.Env, in contract.BackupDataInput) (contract.BackedUp, error) {
	w, err := open(ctx, env, in.PodInput)
	if err != nil {
		return contract.BackedUp{}, err
	}
	w.next = againUpgrade
	d, err := w.dataNamed(in.Data)
	if err != nil {
		return contract.BackedUp{}, err
	}
	rec, err := installed.Read(ctx, w.client)
	if err != nil {
		return contract.BackedUp{}, err
	}
	if resumes(rec, w.release) {
		b, err := w.repo.Get(ctx, rec.Backup)
		if err != nil {
			return contract.BackedUp{}, err
		}
		env.Progress("the backup %s is there", b.ID)
		return backedUp(b, d.Name), nil
	}
	if err := w.repo.Sweep(ctx, env.Run); err != nil {
		return contract.BackedUp{}, err
	}
	readiness.AwaitPods(ctx, w.client, in.Pods)
	there, err := w.there(ctx, d)
	if err != nil {
		return contract.BackedUp{}, err
	}
	if !there {
		env.Progress("there is no such data yet: its namespace is not there")
		return contract.BackedUp{Name: d.Name, Absent: true}, nil
	}
	out := contract.BackedUp{Name: d.Name}
	key := backup.DataKey(env.Run, d.Name)
	env.Progress("backing up %s", d.Name)
	var live string
	err = w.within(ctx, d, false, func(ctx context.Context, p runningPod) (err error) {
		if live, err = p.check(ctx, ""); err != nil {
			return because(CodeBackup, "check data "+d.Name+" before it is backed up", "correct the cause, or the check in the platform release; "+w.next, err)
		}
		fix := "correct the cause, or the dump command in the platform release; " + w.next
		if out.Blob, err = p.dump(ctx, key, fix); err == nil && out.Bytes == 0 {
			err = because(CodeBackup, "dump data "+d.Name, fix, errors.New("the dump is empty"))
		}
		return err
	})
	if err != nil {
		return out, err
	}
	if out.Check, err = w.prove(ctx, d, key, out.Blob, live); err != nil {
		return out, errors.Join(err, w.discard(ctx, key))
	}
	env.Progress("%s backed up, restored beside it and checked: %s", humanize.IBytes(uint64(out.Bytes)), out.Check)
	return out, nil
}

// resumes tells whether the upgrade to a release has begun and has its backup.
func resumes(rec installed.Record, r *platform.Release) bool {
	return rec.Backup != "" && rec.Toward == r.Version
}

// backedUp is the entry of some data in a backup; absent where it has none.
func backedUp(b contract.Backup, data string) contract.BackedUp {
	for _, d := range b.Data {
		if d.Name == data {
			return d
		}
	}
	return contract.BackedUp{Name: data, Absent: true}
}

// there tells whether the cluster may have the data: it has its namespace.
func (w *work) there(ctx context.Context, d platform.Data) (bool, error) {
	o, err := w.pod(ctx, d, false)
	if err != nil {
		return false, w.badPod(d, err)
	}
	live, err := w.client.Namespace(ctx, o.GetNamespace())
	return live != nil, err
}

// dump stores the data below a key; what is left of it is removed if that fails.
func (p runningPod) dump(ctx context.Context, key, fix string) (contract.Blob, error) {
	to := p.repo.Writer(ctx, key)
	told := &telling{w: to, tell: func() { p.env.Progress("backing up %s: %s so far", p.data.Name, humanize.IBytes(uint64(to.Bytes()))) }, last: time.Now()}
	err := p.run(ctx, p.data.Dump, nil, told)
	if told.err != nil { // what the store says tells more than the pipe
		err = told.err
	}
	var out contract.Blob
	if err == nil {
		out, err = to.Close()
	}
	if err != nil {
		return out, errors.Join(because(CodeBackup, "dump data "+p.data.Name, fix, err), p.discard(ctx, key))
	}
	return out, nil
}

// prove restores a dump into a pod with a store of its own, and returns what the check says
// of it there, given what it said of the live data before.
func (w *work) prove(ctx context.Context, d platform.Data, key string, b contract.Blob, live string) (line string, err error) {
	w.env.Progress("restoring the backup of %s beside it", d.Name)
	err = w.within(ctx, d, true, func(ctx context.Context, p runningPod) (err error) {
		if err = p.run(ctx, d.Restore, w.repo.Reader(ctx, key, b), nil); err == nil {
			line, err = p.check(ctx, live)
		}
		return err
	})
	if err != nil {
		return "", because(CodeBackup, "prove the backup of data "+d.Name+" by restoring it",
			"correct the cause, or dump, restore and check in the platform release; "+w.next, err)
	}
	return line, nil
}

// discard removes what is below a key, also after ctx has been cancelled.
func (w *work) discard(ctx context.Context, key string) error {
	ctx, cancel := lasting(ctx)
	defer cancel()
	return w.repo.Clear(ctx, key)
}

// complete adds to the backups of all data the release that is installed and its
// configuration, and notes in the cluster that the upgrade has begun and rests on it.
func complete(ctx context.Context, env *step.Env, in contract.BackupInput) (contract.BackupSummary, error) {
	w, err := open(ctx, env, contract.PodInput{})
	if err != nil {
		return contract.BackupSummary{}, err
	}
	rec, err := installed.Read(ctx, w.client)
	if err != nil {
		return contract.BackupSummary{}, err
	}
	if resumes(rec, w.release) {
		b, err := w.repo.Get(ctx, rec.Backup)
		if err == nil {
			err = w.corrected(ctx, b, in.Settings)
		}
		return b.Summary(), err
	}
	b, err := w.assemble(ctx, rec, in)
	if err != nil {
		return contract.BackupSummary{}, err
	}
	if err := w.repo.Put(ctx, b); err != nil {
		return contract.BackupSummary{}, err
	}
	next := installed.Record{Platform: b.Platform, Version: b.From, Toward: b.To, Backup: b.ID, Style: b.Style}
	if err := next.Keep(ctx, w.client, env.Deployment); err != nil {
		return contract.BackupSummary{}, err
	}
	removed, err := w.repo.Retain(ctx, w.release.Retain(), b.ID)
	if err != nil {
		return contract.BackupSummary{}, err
	}
	if len(removed) > 0 {
		env.Progress("removed older backups: %s", strings.Join(removed, ", "))
	}
	env.Progress("backup %s of release %s is complete", b.ID, b.From)
	return b.Summary(), nil
}

// assemble makes the backup of a run, without storing what makes it count.
func (w *work) assemble(ctx context.Context, rec installed.Record, in contract.BackupInput) (contract.Backup, error) {
	kept, err := w.repo.Installed(ctx)
	if err != nil {
		return contract.Backup{}, err
	}
	if kept == nil || kept.Platform != w.release.Name || rec.Version != "" && kept.Version != rec.Version {
		what := "the deployment's state has no copy of the release that is installed"
		if kept != nil {
			what = fmt.Sprintf("the deployment's state has release %s of %s, and %s is installed", kept.Version, kept.Platform, rec.Version)
		}
		return contract.Backup{}, &fault.Fault{
			Code: CodeNotKept, Class: fault.Step, Op: "back up the release that is installed", Err: errors.New(what + "; without it nothing could be rolled back"),
			Fix: "install the installed release again, which stores a copy: slipway install; then upgrade again",
		}
	}
	id := w.env.Run
	release, err := w.repo.Copy(ctx, backup.InstalledKey(kept.Digest), kept.Release, backup.ReleaseKey(id))
	if err != nil {
		return contract.Backup{}, err
	}
	digest, err := w.digest()
	if err != nil {
		return contract.Backup{}, err
	}
	target, err := w.pack(ctx, id, digest)
	if err != nil {
		return contract.Backup{}, err
	}
	return contract.Backup{
		ID: id, Time: time.Now().UTC().Truncate(time.Second), Reason: contract.ForUpgrade, Platform: kept.Platform,
		From: kept.Version, To: w.release.Version, Style: cmp.Or(in.Style, contract.Graceful), Config: kept.Config, Release: &release, Target: &target, TargetDigest: digest, Settings: in.Settings, Data: in.Data,
	}, nil
}

func (w *work) digest() (string, error) { return platform.Digest(os.DirFS(w.env.PlatformDir)) }

func (w *work) pack(ctx context.Context, id, digest string) (contract.Blob, error) {
	return w.repo.Pack(ctx, backup.TargetKey(id, digest), os.DirFS(w.env.PlatformDir))
}

// corrected puts the release and its settings into the backup that the upgrade goes on with,
// where they are others than it has begun with: a rollback goes by its commands.
func (w *work) corrected(ctx context.Context, b contract.Backup, settings json.RawMessage) error {
	digest, err := w.digest()
	if err != nil {
		return err
	}
	other := !bytes.Equal(settings, b.Settings)
	b.Settings = settings
	if digest == b.TargetDigest {
		if other {
			err = w.repo.Put(ctx, b)
		}
		return err
	}
	target, err := w.pack(ctx, b.ID, digest)
	if err != nil {
		return err
	}
	before := b.TargetDigest
	b.Target, b.TargetDigest = &target, digest
	if err := w.repo.Put(ctx, b); err != nil {
		return err
	}
	return w.repo.Clear(ctx, backup.TargetKey(b.ID, before))
}

// telling is a writer that tells now and then how far it is.
type telling struct {
	w    io.Writer
	tell func()
	last time.Time
	err  error
}

const tellEvery = 10 * time.Second

func (t *telling) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	if err != nil {
		t.err = err
	}
	if time.Since(t.last) > tellEvery {
		t.last = time.Now()
		t.tell()
	}
	return n, err
}
