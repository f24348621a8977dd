package lock

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/slipway-sh/slipway/fault"
)

// retained is how many generations below the highest retain their records, so that
// slow contenders still run into them.
const retained = 16

// Unlock breaks the lock and records who did it and when, in the same write.
// Without force it does so only if the holder seems dead, after watching it for a
// while; otherwise it fails as Acquire does. A holder that is alive finds out at its next
// heartbeat, and its context ends. After force, nobody gets the lock before everything that
// works for that holder must have ended, even if it cannot read that the lock was broken.
func (l *Lock) Unlock(ctx context.Context, by Holder, force bool) (Record, error) {
	s, err := l.snapshot(ctx)
	if err != nil {
		return Record{}, err
	}
	if s.free() {
		return Record{}, notLocked()
	}
	after, his := s.broken("it was taken away by force"), l.settings(s)
	if !force {
		var done func()
		if after, done, err = l.vacant(ctx, &s); err != nil {
			return Record{}, err
		}
		defer done()
		if after == nil { // it was released meanwhile
			return Record{}, notLocked()
		}
		his.Grace = 0
	}
	now := l.opts.Clock().UTC()
	r := Record{
		Generation: s.generation + 1, State: Forced, Holder: by, Token: rand.Text(), Acquired: now, Beat: now, After: after,
		Every: his.Every, TTL: his.TTL, Grace: his.Grace,
	}
	mine, err := l.create(ctx, r)
	if err != nil {
		return Record{}, err
	}
	if mine {
		return r, nil
	}
	// The holder that the caller wanted to break is gone; do not break another one.
	switch s, err = l.snapshot(ctx); {
	case err != nil:
		return Record{}, err
	case s.damage != nil:
		return Record{}, s.damage
	case s.free():
		return Record{}, notLocked()
	}
	return Record{}, l.held(s.record)
}

// settings returns a record with the settings of the holder of s, as far as they are known.
func (l *Lock) settings(s snapshot) Record {
	if s.damage != nil {
		return Record{Every: l.opts.Beat.Milliseconds(), TTL: l.opts.TTL.Milliseconds(), Grace: l.opts.Grace.Milliseconds()}
	}
	return Record{Every: s.record.Every, TTL: s.record.TTL, Grace: s.record.Grace}
}

const opUnlock = "break the deployment's lock"

func notLocked() error {
	return &fault.Fault{Code: CodeNotLocked, Class: fault.Usage, Op: opUnlock,
		Err: errors.New("nobody holds it"), Fix: "run what you wanted to run: slipway install"}
}

func (l *Lock) prune(ctx context.Context, highest int64) error {
	all, err := l.listed(ctx)
	for _, n := range all {
		if n < highest-retained || highest+gap < n {
			if err := l.store.Delete(ctx, key(n)); err != nil {
				return err
			}
		}
	}
	return err
}

func isLost(err error) bool { return errors.Is(err, &fault.Fault{Code: CodeLost}) }
