package installed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// The note in kube.SystemNamespace, and its key.
const (
	releaseNote = "slipway-release"
	releaseKey  = "release.json"
)

// Record says which release of which platform a cluster has; the zero value: none.
type Record struct {
	Platform string `json:"platform"`          // its name
	Version  string `json:"version,omitempty"` // the last one that was installed to the end; empty: none yet
	// Toward is the version to which a run brings the cluster, or has begun to; empty if that is
	// Version.
	Toward string `json:"toward,omitempty"`
	// Backup is the id of the backup that was made before the upgrade to Toward or, where that
	// is empty, to Version; empty: none was.
	Backup     string      `json:"backup,omitempty"`
	Style      string      `json:"style,omitempty"` // of that upgrade: see contract.Change
	Migrations []Migration `json:"migrations,omitempty"`
	// Rollback is the id of the backup to which a run goes back, or has begun to; empty:
	// none does.
	Rollback string `json:"rollback,omitempty"`
	Saved    string `json:"saved,omitempty"` // id of the backup of the data that the rollback replaces; empty: it has made none
	// Replaced is the data in whose place the rollback has put the backup already.
	Replaced []string `json:"replaced,omitempty"`
}

// Migration is a migration that the upgrade has begun.
type Migration struct {
	Name string `json:"name"`
	Done bool   `json:"done,omitempty"`
}

// Read returns the record of a cluster.
func Read(ctx context.Context, c *kube.Client) (rec Record, err error) {
	_, err = c.Note(ctx, "", releaseNote, releaseKey, &rec)
	return rec, err
}

// Begin notes that a run brings the cluster to a release. An upgrade or a rollback that goes
// on, and what was done for the release that is installed, stays noted.
func (rec Record) Begin(ctx context.Context, c *kube.Client, deployment string, r *platform.Release) error {
	next := Record{Platform: r.Name, Version: rec.Version, Toward: r.Version}
	switch {
	case rec.Rollback != "":
		next = rec
	case rec.Backup != "" && (rec.Toward == r.Version || rec.Toward == "" && rec.Version == r.Version):
		next = rec
	case next.Toward == next.Version:
		next.Toward = ""
	}
	return next.Keep(ctx, c, deployment)
}

// End notes that the cluster has a release.
func End(ctx context.Context, c *kube.Client, deployment string, r *platform.Release) error {
	rec, err := Read(ctx, c)
	if err != nil {
		return err
	}
	next := Record{Platform: r.Name, Version: r.Version}
	if rec.Rollback == "" && rec.Backup != "" && (rec.Toward == r.Version || rec.Toward == "" && rec.Version == r.Version) {
		next.Backup, next.Style, next.Migrations = rec.Backup, rec.Style, rec.Migrations
	}
	return next.Keep(ctx, c, deployment)
}

// Note notes that a migration has begun, or that it is done.
func (rec Record) Note(migration string, isDone bool) Record {
	rec.Migrations = slices.Clone(rec.Migrations)
	if i := slices.IndexFunc(rec.Migrations, func(m Migration) bool { return m.Name == migration }); i >= 0 {
		rec.Migrations[i].Done = isDone
	} else {
		rec.Migrations = append(rec.Migrations, Migration{migration, isDone})
	}
	return rec
}

// Forget notes that a migration was taken back.
func (rec Record) Forget(migration string) Record {
	rec.Migrations = slices.DeleteFunc(slices.Clone(rec.Migrations), func(m Migration) bool { return m.Name == migration })
	return rec
}

// Has tells whether a migration is done.
func (rec Record) Has(migration string) bool {
	return slices.Contains(rec.Migrations, Migration{migration, true})
}

// Keep writes the record to the cluster.
func (rec Record) Keep(ctx context.Context, c *kube.Client, deployment string) error {
	return c.KeepNote(ctx, deployment, releaseNote, releaseKey, rec)
}

// How says what a run does with a release.
type How struct {
	Upgrade bool // it brings the platform to another one than it has
	contract.Change
}

// Check returns a fault unless a run may bring a release over what the cluster has.
// An upgrade to the release that it has is one, too; an install of that is not.
func (rec Record) Check(r *platform.Release, how How) error {
	if rec.Platform != "" && rec.Platform != r.Name {
		return notOver(r, fmt.Errorf("the deployment has another platform, %s", rec.Platform), "install it as a deployment of its own: --name NAME")
	}
	switch {
	case how.Backup != "":
		return rec.checkRollback(r, how.Backup, how.Named)
	case rec.Rollback != "":
		return unfinished(r, fmt.Errorf("the rollback from %s has begun and is not finished", cmp.Or(rec.Toward, rec.Version)),
			"bring it to its end first: slipway rollback --backup "+fault.Quote(rec.Rollback))
	case how.Resume && (rec.Toward == "" || rec.Backup == ""):
		return Nothing()
	case how.Style != "" && rec.Toward == r.Version && rec.Backup != "" && how.Style != rec.Style:
		return &fault.Fault{
			Code: CodeUnfinished, Class: fault.Usage, Op: "upgrade to release " + r.Version,
			Err: fmt.Errorf("this upgrade was begun in style %s", rec.Style), Fix: "go on with it in that style: slipway upgrade --resume",
		}
	case rec.Version != "" && rec.Toward == r.Version && rec.Backup != "" && !how.Upgrade:
		return unfinished(r, rec.between(), rec.goOn())
	}
	return rec.follows(r, how.Upgrade)
}

// Nothing is the fault of who wants to go on with an upgrade where none was begun.
func Nothing() error {
	return &fault.Fault{
		Code: contract.CodeNothing, Class: fault.Usage, Op: "go on with the upgrade", Err: errors.New("no upgrade was begun that is not finished"),
		Fix: "begin one: slipway upgrade --to VERSION",
	}
}

func (rec Record) goOn() string {
	return "go on with it, with the --platform that it was begun with, if any: slipway upgrade --resume; or go back to " + rec.Version + ": slipway rollback"
}

func (rec Record) between() error {
	return fmt.Errorf("the upgrade from %s to %s has begun and is not finished", rec.Version, rec.Toward)
}

// follows returns a fault unless a release can be installed over the cluster's.
func (rec Record) follows(r *platform.Release, upgrade bool) error {
	switch {
	case rec.Platform == "":
		return nil
	case rec.Toward != "" && rec.Version != "" && rec.Toward != r.Version && (rec.Backup != "" || !r.Follows(rec.Toward)):
		fix := "bring it to its end first, by what began it: slipway upgrade --to " + fault.Quote(rec.Toward)
		if rec.Backup != "" {
			fix = rec.goOn()
		}
		return unfinished(r, rec.between(), fix)
	case rec.Version == r.Version && rec.Toward == "" && upgrade:
		return same(r)
	case rec.Version != "" && rec.Version != r.Version && !upgrade && len(r.Data) > 0 && (r.Follows(rec.Version) || rec.Toward == r.Version):
		return &fault.Fault{
			Code: CodeNotOver, Class: fault.Usage, Op: "install release " + r.Version + " of " + r.Name,
			Err: fmt.Errorf("release %s is installed, and its data is to be backed up and migrated first", rec.Version),
			Fix: "upgrade to it: slipway upgrade --to " + fault.Quote(r.Version),
		}
	case rec.Version == "" || rec.Version == r.Version || rec.Toward == r.Version || r.Follows(rec.Version):
		return nil
	case platform.Older(r.Version, rec.Version):
		return notOver(r, fmt.Errorf("release %s is installed, and an older one is not installed over it", rec.Version),
			fmt.Sprintf("name release %s or a newer one: platform.release in the configuration, or --platform; to go back to the release before the last upgrade: slipway rollback", rec.Version))
	}
	return notOver(r, fmt.Errorf("release %s is installed, and %s says of it that it cannot be upgraded (upgradableFrom: %s)",
		rec.Version, r.Version, cmp.Or(strings.Join(r.UpgradableFrom, ", "), "none")),
		"upgrade to a release between first: slipway upgrade --to VERSION; in a release of your own, name "+rec.Version+" under upgradableFrom if it can be installed over that")
}

func same(r *platform.Release) error {
	return platform.Same(r.Version, "slipway install, with a configuration that names it (or --platform)")
}

// checkRollback returns a fault unless the platform may be brought back to a release, from a
// backup.
func (rec Record) checkRollback(r *platform.Release, backup string, named bool) error {
	switch {
	case rec.Rollback != "" && rec.Rollback != backup:
		return unfinished(r, fmt.Errorf("the rollback to backup %s has begun and is not finished", rec.Rollback),
			"bring it to its end first: slipway rollback --backup "+fault.Quote(rec.Rollback))
	case rec.Rollback == "" && rec.Toward == "" && rec.Version == r.Version:
		return same(r)
	case rec.Rollback == "" && rec.Platform != "" && rec.Backup != backup && !named:
		return &fault.Fault{
			Code: contract.CodeNoBackup, Class: fault.Usage, Op: "go back to release " + r.Version,
			Err: fmt.Errorf("backup %s was not made by the upgrade to %s, which is installed", backup, cmp.Or(rec.Toward, rec.Version)),
			Fix: "name the backup to go back to: slipway rollback --backup ID (slipway backups lists them)",
		}
	}
	return nil
}

func unfinished(r *platform.Release, err error, fix string) error {
	return &fault.Fault{Code: CodeUnfinished, Class: fault.Usage, Op: "install release " + r.Version + " of " + r.Name, Err: err, Fix: fix}
}

func notOver(r *platform.Release, err error, fix string) error {
	return &fault.Fault{Code: CodeNotOver, Class: fault.Usage, Op: "install release " + r.Version + " of " + r.Name, Err: err, Fix: fix}
}
