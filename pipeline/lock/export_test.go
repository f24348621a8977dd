package lock

import (
	"context"
	"errors"
	"io/fs"

	"github.com/slipway-sh/slipway/pipeline/store/seal"
)

// Record returns the lease's record as it was when the lock was taken.
func (l *Lease) Record() Record { return l.record }

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
