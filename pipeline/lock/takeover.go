package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// snapshot is the highest generation as it was read. The zero value is a lock that was
// never taken.
type snapshot struct {
	generation int64
	raw        []byte
	record     Record
	damage     error         // why raw is not a valid record
	since      time.Time     // when this Lock had seen it so first, and looked again and again from then on
	looked     time.Time     // when it was asked for last
	unchanged  time.Duration // from since until then
}

// maxReads is how often snapshot starts over when the lock changes while it reads.
const maxReads = 20

// snapshot reads the highest generation.
func (l *Lock) snapshot(ctx context.Context) (snapshot, error) {
	for range maxReads {
		asked := time.Now() // this process may be stopped at any moment
		n, err := l.highest(ctx)
		if err != nil || n == 0 {
			return snapshot{}, err
		}
		s := snapshot{generation: n}
		if s.raw, err = l.store.Get(ctx, key(n)); errors.Is(err, fs.ErrNotExist) {
			continue // it was removed meanwhile, so there is a higher one
		}
		if err == nil {
			s.record, err = decode(s.raw, n)
		}
		if damaged(err) {
			s.damage = l.unreadable(n, err)
		} else if err != nil {
			return snapshot{}, err
		}
		return l.dated(s, asked), nil
	}
	return snapshot{}, fmt.Errorf("the lock's records %s… are listed and cannot be read", prefix)
}

// dated notes for how long s, which was asked for at a moment, has been as it is. Nothing is
// known of a time in which nobody looked: a heartbeat that the network delivers late makes a
// record look as it did before.
func (l *Lock) dated(s snapshot, asked time.Time) snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !s.same(l.seen) || asked.Sub(l.seen.looked) > l.opts.TTL {
		l.seen = s
		l.seen.since = time.Now()
	}
	l.seen.looked = asked
	s.since = l.seen.since
	s.unchanged = asked.Sub(s.since)
	return s
}

// vacant reports whether the lock can be taken. It waits for what works for a holder
// that seems dead to end and, as long as Options.Patience says, for a holder that is alive, and stores
// the record it saw in s. It returns the dead holder's
// generation, nil if the lock was free, or a fault that names the live holder. done must be
// called once the next generation has been created.
func (l *Lock) vacant(ctx context.Context, s *snapshot) (after *Broken, done func(), err error) {
	done = func() {}
	begun, told, alive := time.Now(), false, false
	for first := true; ; first = false {
		now, err := l.snapshot(ctx)
		if err != nil {
			return nil, done, err
		}
		other, changed := now.generation != s.generation, !now.same(*s)
		if *s = now; s.free() && !s.ending() {
			return nil, done, nil
		}
		if !first && !other && changed && s.damage == nil && !s.free() && time.Since(begun) >= l.opts.Patience {
			return nil, done, l.held(s.record) // the record changed, so the holder is alive
		}
		told = told && !changed
		end, gone := l.gone(*s)
		left := l.limit(*s) - s.unchanged
		switch {
		case gone && s.free():
			return nil, end, nil
		case gone:
			return s.broken("every process of it has ended"), end, nil
		case left <= 0 && s.free():
			return nil, done, nil
		case left <= 0:
			return s.broken(s.expiry(l.limit(*s))), done, nil
		case l.recent(*s) && l.opts.Patience == 0 && (first || other):
			return nil, done, l.held(s.record)
		case l.recent(*s) && l.opts.Patience > 0:
			if !alive && l.opts.Waiting != nil {
				l.opts.Waiting(s.record, nil, 0)
			}
			alive = true
		case !told && l.opts.Waiting != nil:
			l.opts.Waiting(s.record, s.damage, left)
			told = true
		}
		every := l.opts.Beat
		if l.opts.Patience > 0 {
			every /= 4
		}
		if err := pause(ctx, min(every, left)); err != nil {
			return nil, done, err
		}
	}
}

// limit returns how long a record must stay unchanged, by the contender's own clock, before
// nothing works for its holder any more. The time in the record does not count: clocks of
// machines differ.
func (l *Lock) limit(s snapshot) time.Duration {
	if s.damage != nil {
		return l.opts.TTL + l.opts.Beat + l.opts.Grace
	}
	return s.record.over() // if it was broken by force: of the holder that may not know it
}

// recent reports whether the holder appears to be alive by the time in its record, so that
// there is no need to watch it.
func (l *Lock) recent(s snapshot) bool {
	if s.damage != nil || s.free() {
		return false
	}
	return l.opts.Clock().Sub(s.record.Beat).Abs() <= s.record.ttl()
}

// gone reports whether it is known that nothing works for the holder of s any more, and
// keeps it so until done is called.
func (l *Lock) gone(s snapshot) (done func(), gone bool) {
	if l.opts.Gone == nil || s.damage != nil {
		return nil, false
	}
	if s.free() {
		return l.opts.Gone(s.record.After.Holder)
	}
	return l.opts.Gone(s.record.Holder)
}

// free reports whether nobody holds the lock according to its record.
func (s snapshot) free() bool { return s.generation == 0 || s.damage == nil && s.record.State != Held }

// ending reports whether the lock was broken by force and something may still work for its
// holder.
func (s snapshot) ending() bool {
	return s.damage == nil && s.record.State == Forced && s.record.Grace > 0 && s.record.After != nil
}

// same reports whether both are of one generation and nothing was written between them.
func (s snapshot) same(other snapshot) bool {
	return s.generation == other.generation && bytes.Equal(s.raw, other.raw)
}

// expiry describes why the lock may be taken: s did not change while it was watched.
func (s snapshot) expiry(watched time.Duration) string {
	if s.damage != nil {
		return fmt.Sprintf("%v, and nobody mended it within %s", s.damage, watched)
	}
	return fmt.Sprintf("its holder gave no sign of life for %s", watched)
}

// broken describes s as a generation that is broken.
func (s snapshot) broken(why string) *Broken {
	return &Broken{Generation: s.generation, Holder: s.record.Holder, Acquired: s.record.Acquired, Beat: s.record.Beat, Why: why}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
