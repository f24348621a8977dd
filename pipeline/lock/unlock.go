package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"strings"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/seal"
)

// kept is how many generations below the highest keep their records, so that one
// who is late meets them.
const kept = 16

// Unlock takes the lock away from its holder, and records who did it, when and
// why, in the same write. Without force it does so only when the holder seems
// dead, after it has watched for a while; else the error is that of Acquire. A
// holder that is alive finds out at its next heartbeat, and its context ends.
func (l *Lock) Unlock(ctx context.Context, by Holder, reason string, force bool) (Record, error) {
	if reason = strings.TrimSpace(reason); reason == "" {
		return Record{}, &fault.Fault{Code: CodeNoReason, Class: fault.Usage, Op: opUnlock,
			Err: errors.New("no reason was given; it is recorded"), Fix: "slipway unlock --force --reason 'the machine of that run is gone'"}
	}
	s, err := l.look(ctx)
	if err != nil {
		return Record{}, err
	}
	if s.free() {
		return Record{}, notLocked()
	}
	after := s.broken("it was taken away by force")
	if !force {
		if after, err = l.vacant(ctx, &s); err != nil {
			return Record{}, err
		}
		if after == nil { // it was released meanwhile
			return Record{}, notLocked()
		}
	}
	now := l.opts.Clock().UTC()
	r := Record{Generation: s.generation + 1, State: Forced, Holder: by, Token: rand.Text(), Acquired: now, Beat: now, Reason: reason, After: after}
	mine, err := l.create(ctx, r)
	if err != nil {
		return Record{}, err
	}
	if mine {
		return r, nil
	}
	// Whom the caller wanted to break is gone, and nobody else is broken.
	current, err := l.Current(ctx)
	if err != nil {
		return Record{}, err
	}
	if current == nil {
		return Record{}, notLocked()
	}
	return Record{}, l.held(*current)
}

const opUnlock = "take the deployment's lock away"

func notLocked() error {
	return &fault.Fault{Code: CodeNotLocked, Class: fault.Usage, Op: opUnlock,
		Err: errors.New("nobody holds it"), Fix: "run what you wanted to run: slipway install"}
}

// History are the generations that broke another one, by force or because it had
// expired, oldest first.
func (l *Lock) History(ctx context.Context) ([]Record, error) {
	keys, err := l.store.List(ctx, archive)
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, k := range keys {
		data, err := l.store.Get(ctx, k)
		if err != nil {
			return nil, err
		}
		var r Record
		if err := seal.Open(data, kind, version, &r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	recent, err := l.generations(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range recent {
		if len(all) > 0 && n <= all[len(all)-1].Generation {
			continue // it is about to be removed
		}
		r, err := l.read(ctx, n)
		_, damaged := errors.AsType[*seal.Error](err)
		switch {
		case damaged || errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case r.After != nil:
			all = append(all, r)
		}
	}
	return all, nil
}

// prune removes old generations and moves those that broke another one to the
// archive.
func (l *Lock) prune(ctx context.Context, highest int64) error {
	all, err := l.generations(ctx)
	if err != nil {
		return err
	}
	for _, n := range all {
		if n >= highest-kept {
			break
		}
		data, err := l.store.Get(ctx, key(n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if r, err := decode(data, n); err == nil && r.After != nil {
			if err := l.store.Create(ctx, archive+strings.TrimPrefix(key(n), prefix), data); err != nil && !errors.Is(err, store.ErrExists) {
				return err
			}
		}
		if err := l.store.Delete(ctx, key(n)); err != nil {
			return err
		}
	}
	return nil
}

// isLost tells whether err says that the lock was lost.
func isLost(err error) bool { return errors.Is(err, &fault.Fault{Code: CodeLost}) }
