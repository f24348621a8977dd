package contract

import "github.com/slipway-sh/slipway/pipeline/lock"

// StateRequest is what an action of `slipway state` works with; most need nothing. The action's
// answer, if it has one, is JSON in ResultFile.
type StateRequest struct {
	Who        lock.Holder `json:"who,omitzero"`         // hold, unlock: who does it; open, purge, watch, wipe: the run that has the lock
	Deployment string      `json:"deployment,omitempty"` // open: its name
	ID         string      `json:"id,omitempty"`         // run, report: of a run; backup: of a backup
	Entry      string      `json:"entry,omitempty"`      // open, purge: the deployment's file in the engine's index
	Path       string      `json:"path,omitempty"`       // keep: file with RunFiles; report: directory to make
	Patience   Duration    `json:"patience,omitzero"`    // hold: how long to wait for a holder that is alive
	Port       int         `json:"port,omitempty"`       // hold: where to listen once the lock is held
	Force      bool        `json:"force,omitempty"`      // unlock: also when the holder is alive
}
