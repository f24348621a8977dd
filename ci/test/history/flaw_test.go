package history_test

import (
	"context"
	"math/rand/v2"

	"github.com/slipway-sh/slipway/pipeline/journal"
)

// flaw is what is wrong with the protocol on purpose, so that the check has something to find.
type flaw string

const (
	unfenced    flaw = "unfenced"    // who writes does not ask whether the lock is held
	unversioned flaw = "unversioned" // nor is there a version for each holder
	hasty       flaw = "hasty"       // a holder is taken over at once, as if nothing worked for it
	forgetful   flaw = "forgetful"   // not all is stored of what the journal's store accepts
)

// forgets is a store that loses some of what it accepts.
type forgets struct{ journal.Store }

func (f forgets) Put(ctx context.Context, key string, data []byte) error {
	if rand.IntN(5) == 0 {
		return nil
	}
	return f.Store.Put(ctx, key, data)
}
