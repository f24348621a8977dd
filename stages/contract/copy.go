package contract

import (
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// CodeCopy: the copy of a deployment's state, from which that is to be restored, cannot be
// used.
const CodeCopy fault.Code = "DEP-011"

// Identity tells a deployment from others of the same name: deployment/ in its state.
type Identity struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Restored is how often the state was made from a copy of it.
	Restored int `json:"restored"`
}

// Opened is what a run finds when it has taken the lock.
type Opened struct {
	// Identity is nil if nothing is known of the deployment, and there is a copy of its state.
	Identity *Identity `json:"identity,omitempty"`
	// Lost says that the volume of the cluster on which the deployment was is empty. It is
	// known of a cluster that Slipway runs.
	Lost bool `json:"lost"`
	// Last is the id of the last run; empty if none is known.
	Last string `json:"last,omitempty"`
	// From is the engine that has had the cluster until now; nil unless it is another one.
	From *Engine `json:"from,omitempty"`
	// Removed says that this run has removed the deployment.
	Removed bool `json:"removed,omitempty"`
	// Phases are those of that run: a removal has no release that says what they are.
	Phases []report.Phase `json:"phases,omitempty"`
}

// Over is what a run is to bring over what is installed, for what the records of earlier runs
// tell of that.
type Over struct {
	Platform       string   `json:"platform"` // name of the release
	Version        string   `json:"version"`
	UpgradableFrom []string `json:"upgradableFrom,omitempty"`
	Data           bool     `json:"data,omitempty"` // the release has data
	Upgrade        bool     `json:"upgrade,omitempty"`
	Change         Change   `json:"change,omitzero"`
}

// Names of the files of a copy, as `slipway state copy` leaves them.
const (
	CopyFile        = "copy.json"         // Copy
	CopyStateFile   = "state.tar.zst"     // values of the store, by key
	CopyBackupsFile = "backups.tar.zst"   // those of the backups
	CopyIdentity    = "secrets/identity"  // key that was made for the secrets, where the state is in a bucket
	CopyDir         = "/slipway/copy"     // in a container that restores one
	CopyOut         = "/slipway/out/copy" // in one that makes one
)

// Copy is what a copy of a deployment's state says of itself.
type Copy struct {
	Identity
	Run        string    `json:"run"`        // that took it
	Generation int64     `json:"generation"` // of the lock of that run
	At         time.Time `json:"at"`
	// Files are its files, by what they have: CopyStateFile, CopyBackupsFile, CopyIdentity.
	Files map[string]CopiedFile `json:"files"`
	// Backups identifies the content of CopyBackupsFile; empty: there are no backups.
	Backups string `json:"backups,omitempty"`
	// LeftOut are the keys of values that are too large for it.
	LeftOut []string `json:"leftOut,omitempty"`
	// Stored is what the state knew.
	Stored Stored `json:"stored"`
}

// CopiedFile is a file of a copy.
type CopiedFile struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // hex
}

// Older reports whether c was taken before other, of the same deployment.
func (c *Copy) Older(other *Copy) bool {
	if c.Restored != other.Restored {
		return c.Restored < other.Restored
	}
	if c.Generation != other.Generation {
		return c.Generation < other.Generation
	}
	return c.At.Before(other.At)
}
