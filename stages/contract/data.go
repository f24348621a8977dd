package contract

import (
	"encoding/json"
	"time"

	"github.com/slipway-sh/slipway/fault"
)

// The codes of faults that the conductor's side knows, too.
const (
	// CodeNothing: there is no upgrade to go on with.
	CodeNothing fault.Code = "UPG-010"
	// CodeNoBackup: there is no such backup, none at all, or nobody named the one to go back to.
	CodeNoBackup fault.Code = "BAK-003"
	// CodeConsent: a rollback would put a backup in the place of the present data.
	CodeConsent fault.Code = "UPG-015"
)

// The styles of an upgrade.
const (
	Graceful = "graceful" // an upgrade stops nothing; a rollback, who uses data that it replaces
	InPlace  = "in-place" // who uses data is stopped while it is migrated, too
)

// Change says, besides the releases, how a run brings the platform from one to another.
type Change struct {
	Resume bool   `json:"resume,omitempty"` // go on with the upgrade that is not finished, and begin none
	Style  string `json:"style,omitempty"`  // Graceful or InPlace; empty: that of the upgrade which goes on, or Graceful
	// Backup is the id of the one that a rollback goes back to.
	Backup string `json:"backup,omitempty"`
	// Named says that somebody named that backup. Otherwise it has to be that of the upgrade
	// to what is installed.
	Named bool `json:"named,omitempty"`
	// Restore allows a rollback to put the backup in the place of the present data.
	Restore bool `json:"restore,omitempty"`
}

// PodInput is what the Pods of a release's data are made from.
type PodInput struct {
	Fill    map[string]any    `json:"fill,omitempty"`   // what their texts name, without images and settings: see platform.Fill
	Images  map[string]string `json:"images,omitempty"` // reference by digest, by name
	Rewrite map[string]string `json:"rewrite,omitempty"`
	// PullSecret is as in ComponentInput.
	PullSecret bool            `json:"pullSecret,omitempty"`
	Settings   json.RawMessage `json:"settings,omitempty"` // the release's own
	// Pods is as in LeftoversInput: what serves the data may have been started a moment ago.
	Pods string `json:"pods,omitempty"`
}

// BackupDataInput is what preorchestrator/backup-NAME works on. The platform release, to
// which the platform is brought, is in PlatformDir.
type BackupDataInput struct {
	PodInput
	Data string `json:"data"` // its name
}

// Blob is a value that is stored in pieces.
type Blob struct {
	Bytes  int64    `json:"bytes"`
	SHA256 string   `json:"sha256"` // of the whole
	Chunks []string `json:"chunks"` // sha256 of each piece, in their order
}

// BackedUp is the backup of some data.
type BackedUp struct {
	Name string `json:"name"`
	Blob
	Check string `json:"check"` // what the check of the restored backup printed; empty: it was not restored
	// Absent says that there was no such data: its namespace was not there.
	Absent bool `json:"absent,omitempty"`
}

// BackupInput is what preorchestrator/backup makes a backup of. The platform release, to
// which the platform is brought, is in PlatformDir.
type BackupInput struct {
	Style    string          `json:"style,omitempty"`    // see Change
	Settings json.RawMessage `json:"settings,omitempty"` // of that release
	Data     []BackedUp      `json:"data"`
}

// The reasons of backups.
const (
	ForUpgrade  = "upgrade"  // made before one
	ForRollback = "rollback" // of the data that a rollback replaced
)

// Backup is what an upgrade can be rolled back to.
type Backup struct {
	ID       string          `json:"id"` // of the run that made it
	Time     time.Time       `json:"time"`
	Reason   string          `json:"reason"`   // ForUpgrade or ForRollback
	Platform string          `json:"platform"` // its name
	From     string          `json:"from"`     // version of the release that was installed
	To       string          `json:"to"`       // version to which the platform was brought
	Style    string          `json:"style,omitempty"`
	Config   json.RawMessage `json:"config,omitempty"`  // of the release that was installed, canonical
	Release  *Blob           `json:"release,omitempty"` // that release, a zip archive
	Target   *Blob           `json:"target,omitempty"`  // the other one, whose commands dump and restore the data
	// TargetDigest identifies its files: an upgrade may go on with a release that was corrected.
	TargetDigest string `json:"targetDigest,omitempty"`
	// Settings are those of that release, which the files of its pods may name.
	Settings json.RawMessage `json:"settings,omitempty"`
	Data     []BackedUp      `json:"data"`
}

// Installed is the release that was installed last, kept for backups.
type Installed struct {
	Platform string          `json:"platform"` // its name
	Version  string          `json:"version"`
	Digest   string          `json:"digest"`           // of its files: see platform.Digest
	Config   json.RawMessage `json:"config,omitempty"` // with which it was installed, canonical
	Release  Blob            `json:"release"`
}

// BackupRelease is a backup with the files of the release that was installed when it was made.
type BackupRelease struct {
	Backup
	Archive []byte `json:"archive"` // a zip archive
}

// BackupSummary is a backup in a list.
type BackupSummary struct {
	ID      string        `json:"id"`
	Time    time.Time     `json:"time,omitzero"`
	Reason  string        `json:"reason,omitempty"`
	From    string        `json:"from,omitempty"`
	To      string        `json:"to,omitempty"`
	Data    []DataSummary `json:"data"`
	Problem string        `json:"problem,omitempty"` // why it cannot be used; only ID is set then
}

// DataSummary is the backup of some data in a list.
type DataSummary struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Check  string `json:"check,omitempty"` // what its check printed; empty: it was not verified
}

// Summary is the backup's line in a list.
func (b Backup) Summary() BackupSummary {
	out := BackupSummary{ID: b.ID, Time: b.Time, Reason: b.Reason, From: b.From, To: b.To, Data: []DataSummary{}}
	for _, d := range b.Data {
		if !d.Absent {
			out.Data = append(out.Data, DataSummary{Name: d.Name, Bytes: d.Bytes, SHA256: d.SHA256, Check: d.Check})
		}
	}
	return out
}

// MigrateInput is what the migrations of an upgrade work on.
type MigrateInput struct {
	PodInput
	Data []string `json:"data"` // whose component is on
}

// Migrated is what migrations did.
type Migrated struct {
	Migrations []string          `json:"migrations"`       // that have been carried out, now or before
	Checks     map[string]string `json:"checks,omitempty"` // what the check of the live data printed, by data
	Failed     []string          `json:"failed,omitempty"` // data whose check failed, which the rollback was allowed to pass over
}

// RestoreInput is what a rollback does with the data.
type RestoreInput struct {
	PodInput
	Backup  string `json:"backup"`  // id
	Restore bool   `json:"restore"` // see Change
}

// Restored is what a rollback did with the data.
type Restored struct {
	Undone   []string `json:"undone,omitempty"`   // migrations that were taken back
	Restored []string `json:"restored,omitempty"` // data that the backup has replaced
	Saved    string   `json:"saved,omitempty"`    // id of the backup of what was replaced
	Unsaved  []string `json:"unsaved,omitempty"`  // data that is not in it, for it could not be dumped
}
