package contract

import (
	"time"

	"github.com/slipway-sh/slipway/pipeline/report"
)

// Identity tells a deployment from others of the same name: deployment/ in its state.
type Identity struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
}

// Opened is what a run finds when it has taken the lock.
type Opened struct {
	Lost  bool `json:"lost,omitempty"`  // as that of Stored
	First bool `json:"first,omitempty"` // no install has succeeded yet
	Known int  `json:"known,omitempty"` // steps that the journal knows
	// Phases are those of the last run: a removal has no release that says what they are.
	Phases []report.Phase `json:"phases,omitempty"`
}
