package state

import (
	"context"

	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// Work is what this process does for a run that holds the deployment's lock.
type Work struct {
	// Store is the deployment's as long as the run has the lock. After that, a write to it
	// fails with lock.CodeLost.
	Store *store.Store
	// Generation is the lock's.
	Generation int64

	held  func(context.Context) error
	watch *lock.Watch
	end   func() error
}

// Work begins work for a run, which must hold the lock that is in s. The returned context
// ends when the lock is lost; see lock.Watch for that and for the errors. Until End, or until
// this process and all that it has started have ended, it is known in the volume that the run
// is worked for.
func (p Backend) Work(ctx context.Context, s *store.Store, run string) (context.Context, *Work, error) {
	if err := check(run); err != nil {
		return nil, nil, err
	}
	// Before the look at the lock: who takes it over makes sure that nothing begins.
	end, err := p.share(ctx, run, workersFile)
	if err != nil {
		return nil, nil, err
	}
	l := lock.New(s, lock.Options{})
	watched, watch, err := l.Watch(ctx, run)
	if err != nil {
		_ = end() // nothing was begun
		return nil, nil, err
	}
	held := func(ctx context.Context) error {
		if _, err := l.HeldBy(ctx, run); err != nil {
			return err
		}
		return lock.Guard(ctx) // this process may have stood still since the answer
	}
	return watched, &Work{Store: s.Fenced(held), Generation: watch.Record().Generation, held: held, watch: watch, end: end}, nil
}

// Held fails with lock.CodeLost once the lock is lost, as a write to Store does.
func (w *Work) Held(ctx context.Context) error { return w.held(ctx) }

// End ends the work and its context.
func (w *Work) End() error {
	w.watch.Stop()
	return w.end()
}
