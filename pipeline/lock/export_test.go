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
// that had expired, oldest first, as long as their records are retained.
func (l *Lock) History(ctx context.Context) ([]Record, error) {
	recent, err := l.generations(ctx)
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, n := range recent {
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
