package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Files in a run's directory of the volume, which are no values of a store. Who a file is
// named for shares the system's lock on it, together with all that it starts. The lock ends
// with its processes, however they end: who gets it alone knows that there is none.
const (
	holderFile  = ".holder"  // holds the deployment's lock for the run
	workersFile = ".workers" // work under it
)

// Pauses and limits of waiting for the system's lock, which nobody has alone for long.
const (
	alivePause = 20 * time.Millisecond
	aliveLimit = time.Minute
)

// errBusy: somebody else has a lock.
var errBusy = errors.New("somebody else has it")

func (p Backend) aliveFile(run, name string) string {
	return filepath.Join(p.Volume, runsDir, run, name)
}

// Holds notes that this process is going to hold the deployment's lock for a run, until end is
// called.
func (p Backend) Holds(ctx context.Context, run string) (end func() error, err error) {
	if err := check(run); err != nil {
		return nil, err
	}
	if end, err = p.share(ctx, run, holderFile); err != nil {
		return nil, err
	}
	// The file is there from the beginning: without it nobody knows who works.
	works, err := p.share(ctx, run, workersFile)
	if err == nil {
		err = works()
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}

// Idle reports whether nothing works for a run in this volume. Then nothing can begin to
// before done is called.
func (p Backend) Idle(run string) (done func(), idle bool) {
	f, err := alone(p.aliveFile(run, workersFile))
	return closed(f), err == nil
}

// Gone reports whether it is certain that nothing holds the lock for a run or works for it.
// That is known where the run had this volume only. Then nothing can begin to before done is
// called.
func (p Backend) Gone(run string) (done func(), gone bool) {
	if check(run) != nil {
		return nil, false
	}
	holder, err := alone(p.aliveFile(run, holderFile))
	if err != nil {
		return nil, false
	}
	workers, err := alone(p.aliveFile(run, workersFile))
	if err != nil {
		closed(holder)()
		return nil, false
	}
	return func() {
		closed(workers)()
		closed(holder)()
	}, true
}

// closed closes f, which has no unwritten data; that ends the lock on it.
func closed(f *os.File) func() { return func() { _ = f.Close() } }

// share takes the system's lock on a file of a run, beside others.
func (p Backend) share(ctx context.Context, run, name string) (end func() error, err error) {
	path := p.aliveFile(run, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the run's directory: %w", err)
	}
	for begun := time.Now(); ; {
		f, err := shared(path)
		switch {
		case err == nil:
			return f.Close, nil
		case !errors.Is(err, errBusy) || time.Since(begun) > aliveLimit:
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(alivePause):
		}
	}
}
