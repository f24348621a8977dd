package lock

import (
	"context"
	"sync"
	"time"
)

// Watch is the lock of a run, as a process sees it that works under it or holds it. It is safe for
// concurrent use.
type Watch struct {
	lock   *Lock
	run    string
	record Record // as it was seen first
	beats  bool   // the process holds the lock, and writes the heartbeats

	end    context.CancelCauseFunc // ends the context of what works under the lock
	quit   context.CancelFunc      // ends the watch after the look that is under way
	cancel context.CancelFunc      // ends that look, too
	ended  chan struct{}           // closed when nothing is watched any more
	looks  sync.WaitGroup          // that are under way, also those whose answer nobody waits for

	mu        sync.Mutex
	seen      snapshot      // the last one with the record's holder
	looked    time.Duration // by Options.Boot: it was seen by a look that began then, or later
	confirmed time.Duration // by Options.Boot: the look began that saw it first, or the writing of it
	certain   time.Duration // by Options.Boot: the holder was alive then, or later
	lost      error         // why the lock is lost; nil while it is not known to be
	since     time.Duration // by Options.Boot: lost was set then
}

type watchKey struct{}

// Watch watches the lock, which run holds, until Stop. It fails as HeldBy does, and with
// LOK-002 if the holder's last heartbeat is old and no other arrives. Stop must be called
// unless there is an error.
//
// The returned context is derived from ctx and ends when run has lost the lock, or when
// nothing has shown for the holder's time to live that it has it: its cause is LOK-002.
// Whoever works with it then has the holder's grace to end, in which it may still write, and
// is bound to it by Guard.
func (l *Lock) Watch(ctx context.Context, run string) (context.Context, *Watch, error) {
	w := &Watch{lock: l, run: run}
	if err := w.begin(ctx); err != nil {
		return nil, nil, err
	}
	return w.start(context.WithValue(ctx, watchKey{}, w)), w, nil
}

// start begins to look at the lock, and returns a context that ends when it is lost.
func (w *Watch) start(ctx context.Context) context.Context {
	ctx, w.end = context.WithCancelCause(ctx)
	var asking, waiting context.Context
	asking, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	waiting, w.quit = context.WithCancel(asking)
	w.ended = make(chan struct{})
	go w.watch(waiting, asking)
	return ctx
}

// Record is the record of the lock's holder when it was first seen.
func (w *Watch) Record() Record { return w.record }

// Stop ends the watch and its context.
func (w *Watch) Stop() {
	w.end(nil)
	w.cancel()
	<-w.ended
}

// Guard returns LOK-002 if ctx belongs to a Watch and so much time has passed since the
// holder was last known to be alive that another run may work by now. It makes no request, so
// it can be called right before each request: it stops a process that stood still, or whose
// machine slept, from doing what it had decided before.
func Guard(ctx context.Context) error {
	w, ok := ctx.Value(watchKey{}).(*Watch)
	if !ok {
		return nil
	}
	if silent := w.atMost(); silent > w.record.over() {
		return w.lose(lost("nothing is known of it since %s ago", silent.Round(time.Second)))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost != nil && w.lock.opts.Boot()-w.since > w.record.grace() {
		return w.lost
	}
	return nil
}

// Lost returns LOK-002 if ctx belongs to a Watch and the lock is known to be lost, or Guard
// says so; else nil.
func Lost(ctx context.Context) error {
	if err := Guard(ctx); err != nil {
		return err
	}
	w, ok := ctx.Value(watchKey{}).(*Watch)
	if !ok {
		return nil
	}
	return w.loss()
}

// loss is why the lock is lost; nil while it is not known to be.
func (w *Watch) loss() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// lose ends the watch's context; the first reason counts.
func (w *Watch) lose(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost == nil {
		w.lost, w.since = err, w.lock.opts.Boot()
		w.end(err)
	}
	return w.lost
}

// silent is how long ago the holder was last seen to be alive.
func (w *Watch) silent() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lock.opts.Boot() - w.confirmed
}

// atMost is how long ago the holder may have given its last sign of life. Another run counts
// from that, whenever it was seen here.
func (w *Watch) atMost() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lock.opts.Boot() - w.certain
}

// begin makes sure that the run has the lock and its holder is alive. The last heartbeat is
// enough if it is recent by the clock of this machine, which is mostly the holder's clock, too;
// otherwise the next heartbeat must arrive.
func (w *Watch) begin(ctx context.Context) error {
	asked := w.lock.opts.Boot()
	s, err := w.lock.heldBy(ctx, w.run)
	if err != nil {
		return err
	}
	w.record, w.seen, w.looked = s.record, s, asked
	if age := w.lock.opts.Clock().Sub(s.record.Beat); 0 <= age && age <= s.record.ttl() {
		w.confirmed, w.certain = asked-age, asked-age
		return nil
	}
	for range 2 * looks {
		if err := pause(ctx, s.record.every()/looks); err != nil {
			return err
		}
		asked = w.lock.opts.Boot()
		now, err := w.lock.heldBy(ctx, w.run)
		if err != nil {
			return err
		}
		if w.note(now, asked) {
			return nil
		}
	}
	return lost("its holder gives no sign of life: the last one was at %s", s.record.Beat.Format(time.RFC3339))
}

// looks is how often begin looks for a heartbeat in the time in which one must arrive.
const looks = 6

// heldBy is HeldBy with the whole snapshot.
func (l *Lock) heldBy(ctx context.Context, run string) (snapshot, error) {
	s, err := l.snapshot(ctx)
	switch {
	case err != nil:
		return s, err
	case s.damage != nil:
		return s, s.damage
	case s.free():
		return s, lost("run %s does not hold it any more: nobody has it", run)
	case s.record.Holder.Run != run:
		return s, lost("run %s does not hold it any more: %s has it", run, s.record.Holder)
	}
	return s, nil
}

// watch looks at the lock once a beat, until it is lost or the watch ends.
func (w *Watch) watch(waiting, asking context.Context) {
	defer close(w.ended)
	every, ttl := w.record.every(), w.record.ttl()
	for next := every; pause(waiting, max(min(next, ttl-w.silent()), 0)) == nil; {
		// Only after a look: a process that was stopped may find that all is well.
		limit := ttl - w.silent()
		if !w.beats {
			limit = min(limit, ttl/3)
		}
		err := w.look(asking, max(limit, every))
		if next = every; err != nil {
			next = every / 5
		}
		if silent := w.silent(); !isLost(err) && silent >= ttl {
			err = w.expired(silent, err)
		}
		if asking.Err() == nil && isLost(err) {
			_ = w.lose(err) // which ends the context of the work
			return
		}
	}
}

// expired is the fault of a lock whose holder has not been seen to be alive for too long; err is why the
// last look has learnt nothing.
func (w *Watch) expired(silent time.Duration, err error) error {
	switch {
	case w.beats && err != nil:
		return lost("no heartbeat could be written within %s: %v", w.record.ttl(), err)
	case w.beats:
		return lost("the last heartbeat was %s ago, and one is good for %s", silent.Round(time.Second), w.record.ttl())
	case err != nil:
		return lost("it could not be read (%v) for %s", err, silent.Round(time.Second))
	}
	return lost("no sign of life from its holder for %s", silent.Round(time.Second))
}

// look reads the lock, and writes a heartbeat where that is due, for at most limit: the answer to the next
// question may come. The error is LOK-002 if the lock is lost, and otherwise why nothing was learnt.
func (w *Watch) look(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	asked, answer := w.lock.opts.Boot(), make(chan error, 1)
	w.looks.Go(func() {
		err := w.read(ctx, asked)
		if err == nil && w.beats {
			err = w.beat(ctx)
		}
		answer <- err
	})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done(): // a disk may not answer at all
		return context.Cause(ctx)
	}
}

// read is look, begun at a moment by Options.Boot.
func (w *Watch) read(ctx context.Context, asked time.Duration) error {
	now, err := w.lock.snapshot(ctx)
	switch mine := w.record.Generation; {
	case err != nil:
		return err
	case now.generation > mine:
		return w.lock.successor(ctx, mine, now.generation)
	case now.generation < mine:
		return lost("its record %s was removed from the store", key(mine))
	case now.damage != nil && w.beats: // the next heartbeat mends it
	case now.damage != nil:
		return now.damage
	case now.record.Token != w.record.Token:
		return lost("its record %s is of %s", key(mine), now.record.Holder)
	case now.record.State != Held:
		return lost("it was released")
	}
	if !w.beats {
		w.note(now, asked)
	} else if silent := w.silent(); silent >= w.record.ttl() {
		return w.expired(silent, nil)
	}
	return nil
}

func (w *Watch) beat(ctx context.Context) error {
	r, begun := w.record, w.lock.opts.Boot()
	r.Beat = w.lock.opts.Clock().UTC()
	if err := r.write(ctx, w.lock.store.Put); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.confirmed, w.certain = max(w.confirmed, begun), max(w.certain, begun)
	return nil
}

// note notes what a look has seen that began at a moment by Options.Boot, and reports whether
// it is another heartbeat. That was written after the last look that saw the one before, which
// may be long ago, and not just now.
func (w *Watch) note(now snapshot, asked time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	another := !now.same(w.seen)
	switch {
	case asked <= w.looked: // the answer is late
		return false
	case another:
		w.seen, w.confirmed, w.certain = now, asked, w.looked
	}
	w.looked = asked
	return another
}
