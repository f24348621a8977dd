package lock

import (
	"context"
	"errors"
	"io/fs"

	"github.com/slipway-sh/slipway/pipeline/store"
)

// Record returns the lease's record as it was when the lock was taken.
func (l *Lease) Record() Record { return l.watch.record }

// Current returns the record of the holder, which may have died, or nil if there is
// none.
func (l *Lock) Current(ctx context.Context) (*Record, error) {
	s, err := l.snapshot(ctx)
	switch {
	case err != nil:
		return nil, err
	case s.damage != nil:
		return nil, s.damage
	case s.free():
		return nil, nil
	}
	return &s.record, nil
}

// History returns the generations that broke another one, either by force or because
// that had expired, oldest first.
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
		if err := store.Unseal(data, kind, version, &r); err != nil {
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
		_, damaged := errors.AsType[*store.RecordError](err)
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
