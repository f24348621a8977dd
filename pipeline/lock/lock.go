// Package lock prevents two runs from working on one deployment. The lock lives in
// the deployment's store and only requires that the store can create a value if it
// is absent.
//
// Each time the lock is taken it gets the next generation and a record of its own,
// lock/<generation>.json. That record is created only once, so of several contenders
// one wins. The highest generation is never removed. A holder rewrites its record as
// a heartbeat, and loses the lock when there is a higher generation. What works under the
// lock watches it, and stops when it is lost. docs/state.md describes the protocol.
package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/pipeline/store"
)

// Store is what the lock needs of a store; store.Store is one.
type Store interface {
	store.Values
	Create(ctx context.Context, key string, data []byte) error
}

// The defaults suit a holder that runs beside the steps of its run on a machine that may
// be very busy.
const (
	DefaultBeat  = 3 * time.Second
	DefaultTTL   = 20 * time.Second
	DefaultGrace = 30 * time.Second
)

// Options configures New. All contenders should use the same; in doubt the holder's
// apply, which are in its record.
type Options struct {
	// Beat is the time between two heartbeats; 0 is DefaultBeat.
	Beat time.Duration
	// TTL is how long a holder has the lock after a heartbeat; 0 is DefaultTTL. It
	// must be several beats long.
	TTL time.Duration
	// Grace is how long what works under the lock may take to end once it is lost;
	// nobody takes the lock over before that. 0 is DefaultGrace.
	Grace time.Duration
	// Clock returns the time to write into records; nil is time.Now. Clocks of
	// contenders may differ.
	Clock func() time.Time
	// Boot returns the time since some moment in the past, during which the machine may
	// have been suspended; nil is the system's clock.
	Boot func() time.Duration
	// Gone reports whether it is known that nothing works for a holder any more, whatever
	// its record says, and keeps it so until done is called: nothing can begin to. Nil: it is
	// never known.
	Gone func(Holder) (done func(), gone bool)
	// Patience is how long Acquire waits for a holder that is alive. Then a recent heartbeat is not
	// enough: the holder counts as alive only once the next heartbeat arrives, as it may have been killed
	// since. 0: Acquire does not wait, and a recent heartbeat is enough.
	Patience time.Duration
	// Waiting is called when Acquire or Unlock is going to watch for d whether a
	// holder is alive, or until what works for one whose lock was broken has ended; damage
	// says why the holder's record cannot be read. With a d of 0, Acquire waits for a holder that seems to
	// be alive. It may be nil.
	Waiting func(holder Record, damage error, d time.Duration)
}

// Lock is the lock of the deployment that a store belongs to. It is safe for
// concurrent use.
type Lock struct {
	store Store
	opts  Options

	mu   sync.Mutex
	seen snapshot // the last one
}

// New returns the lock in s. It does not access s.
func New(s Store, opts Options) *Lock {
	if opts.Beat == 0 {
		opts.Beat = DefaultBeat
	}
	if opts.TTL == 0 {
		opts.TTL = DefaultTTL
	}
	if opts.Grace == 0 {
		opts.Grace = DefaultGrace
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Boot == nil {
		opts.Boot = sinceBoot
	}
	return &Lock{store: s, opts: opts}
}

// Acquire takes the lock for who. If a holder is alive, and stays so for Options.Patience, the
// error is a fault of class Locked that names it. If the holder seems dead, Acquire waits until
// what works for it must have ended, then takes the lock over.
//
// The returned context is derived from ctx and ends when the lock is lost, with a
// fault as its cause; use it for all work under the lock. Ending ctx does not release
// the lock: Release must be called.
func (l *Lock) Acquire(ctx context.Context, who Holder) (context.Context, *Lease, error) {
	var from snapshot
	for {
		after, done, err := l.vacant(ctx, &from)
		if err != nil {
			return nil, nil, err
		}
		started, boot, now := time.Now(), l.opts.Boot(), l.opts.Clock().UTC()
		r := Record{
			Generation: from.generation + 1, State: Held, Holder: who, Token: rand.Text(), Acquired: now, Beat: now,
			Every: l.opts.Beat.Milliseconds(), TTL: l.opts.TTL.Milliseconds(), Grace: l.opts.Grace.Milliseconds(), After: after,
		}
		mine, err := l.create(ctx, r)
		done()
		if err == nil && mine {
			mine, err = l.settle(ctx, r)
		}
		if took := max(time.Since(started), l.opts.Boot()-boot); err == nil && mine && took > r.ttl()/2 {
			// To others the holder already looks dead.
			err = lost("it took %s to take it, and a heartbeat is good for %s only", took.Round(time.Millisecond), r.ttl())
		}
		switch {
		case err != nil:
			l.abandon(ctx, r)
			return nil, nil, err
		case mine:
			ctx, lease := l.lease(ctx, r, boot)
			return ctx, lease, nil
		}
	}
}

// settle reports whether r, which was just created, is the highest generation. A slow
// contender may create a generation that others have already passed and removed.
func (l *Lock) settle(ctx context.Context, r Record) (bool, error) {
	highest, err := l.highest(ctx)
	switch {
	case err != nil:
		return false, err
	case highest > r.Generation:
		return false, l.store.Delete(ctx, key(r.Generation))
	case highest < r.Generation:
		return false, fmt.Errorf("lock record %s was written and is not listed", key(r.Generation))
	}
	// A store in which creating r a second time succeeds cannot exclude a second run. Any error will do.
	if r.write(ctx, l.store.Create) == nil {
		return false, unconditional(r)
	}
	return true, l.prune(ctx, r.Generation)
}

// create creates r's generation and reports whether it belongs to r. When a request
// arrives twice, the store may report a record as existing that r itself created.
func (l *Lock) create(ctx context.Context, r Record) (bool, error) {
	err := r.write(ctx, l.store.Create)
	if err == nil {
		return true, nil
	}
	there, readErr := l.read(ctx, r.Generation)
	if readErr == nil && there.Token == r.Token {
		return true, nil
	}
	if errors.Is(err, store.ErrExists) {
		return false, nil
	}
	return false, err
}

// abandonLimit bounds abandon.
const abandonLimit = 5 * time.Second

// abandon marks r as released if it exists, so that nobody waits for it. It is not
// removed, as the highest generation never is. Errors are ignored because r expires.
func (l *Lock) abandon(ctx context.Context, r Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonLimit)
	defer cancel()
	if there, err := l.read(ctx, r.Generation); err != nil || there.Token != r.Token {
		return
	}
	r.State, r.Released = Released, l.opts.Clock().UTC()
	_ = r.write(ctx, l.store.Put)
}

// Live returns the record of the holder if its last heartbeat is recent, else nil. It
// does not wait.
func (l *Lock) Live(ctx context.Context) (*Record, error) {
	s, err := l.snapshot(ctx)
	if err != nil || !l.recent(s) {
		return nil, err
	}
	return &s.record, nil
}

// HeldBy returns the record of run, which holds the lock. If another run or nobody holds it,
// the error is LOK-002. Other errors come from the store or say that the record is damaged.
//
// Call it right before something is written that must not replace what a later holder
// wrote. It does not matter how old the last heartbeat is: nobody takes the lock over
// before the grace for such writes has passed.
func (l *Lock) HeldBy(ctx context.Context, run string) (Record, error) {
	s, err := l.heldBy(ctx, run)
	if err != nil {
		return Record{}, err
	}
	return s.record, nil
}
