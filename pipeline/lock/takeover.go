package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/slipway-sh/slipway/pipeline/store/seal"
)

// snapshot is the highest generation as it was read. The zero value is a lock that was
// never taken.
type snapshot struct {
	generation int64
	raw        []byte
	record     Record
	damage     error // why raw is not a valid record
}

// maxReads is how often snapshot starts over when the lock changes while it reads.
const maxReads = 20

// snapshot reads the highest generation.
func (l *Lock) snapshot(ctx context.Context) (snapshot, error) {
	for range maxReads {
		n, err := l.highest(ctx)
		if err != nil || n == 0 {
			return snapshot{}, err
		}
		s := snapshot{generation: n}
		if s.raw, err = l.store.Get(ctx, key(n)); errors.Is(err, fs.ErrNotExist) {
			continue // it was removed meanwhile, so there is a higher one
		} else if err != nil {
			return snapshot{}, err
		}
		s.record, err = decode(s.raw, n)
		if _, damaged := errors.AsType[*seal.Error](err); damaged {
			s.damage = err
		} else if err != nil {
			return snapshot{}, err
		}
		return s, nil
	}
	return snapshot{}, fmt.Errorf("the lock's records %s… are listed and cannot be read", prefix)
}

// vacant reports whether the lock can be taken. It waits only to make sure that a holder
// that seems dead is, and stores the record it saw in s. It returns the dead holder's
// generation, nil if the lock was free, or a fault that names the live holder.
func (l *Lock) vacant(ctx context.Context, s *snapshot) (*Broken, error) {
	now, err := l.snapshot(ctx)
	for {
		if err != nil {
			return nil, err
		}
		*s = now
		if s.free() {
			return nil, nil
		}
		wait := l.timeout(*s)
		if wait == 0 {
			return nil, l.held(s.record)
		}
		if l.opts.Waiting != nil {
			l.opts.Waiting(s.record, wait)
		}
		if err := pause(ctx, wait); err != nil {
			return nil, err
		}
		now, err = l.snapshot(ctx)
		switch {
		case err != nil:
		case now.generation == s.generation && bytes.Equal(now.raw, s.raw):
			return s.broken(s.expiry(wait)), nil
		case now.generation == s.generation && now.damage == nil && now.record.State == Held:
			return nil, l.held(now.record) // the record changed, so the holder is alive
		}
	}
}

// timeout returns how long a record must stay unchanged before its holder counts as
// dead, or 0 if the holder appears to be alive. The holder's clock may be wrong, so
// the age of a heartbeat alone proves nothing.
func (l *Lock) timeout(s snapshot) time.Duration {
	if s.damage != nil {
		return l.opts.TTL
	}
	switch age := l.opts.Clock().Sub(s.record.Beat); {
	case age > s.record.ttl():
		return 2 * s.record.every()
	case age < -s.record.ttl():
		return s.record.ttl()
	}
	return 0
}

// free reports whether nobody holds the lock according to its record.
func (s snapshot) free() bool { return s.generation == 0 || s.damage == nil && s.record.State != Held }

// expiry describes why the lock may be taken: s did not change while it was watched.
func (s snapshot) expiry(watched time.Duration) string {
	if s.damage != nil {
		return fmt.Sprintf("%v, and nobody mended it within %s", s.damage, watched)
	}
	return fmt.Sprintf("it had expired, and its holder gave no sign of life for another %s", watched)
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
