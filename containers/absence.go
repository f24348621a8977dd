package containers

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"dagger.io/dagger"
)

// An engine asks each client every 5 s whether it is there. Once a question had no answer within 30 s,
// and a second one, before five in a row were answered, had none in time either (45 s if it follows at
// once), it exports nothing to that client any more, though it goes on to serve its requests: an export
// ends after some 95 s with "flightcontrol: exceeded retry timeout" (v0.20.8,
// internal/buildkit/session/grpc.go, internal/buildkit/util/flightcontrol).
const (
	standstill  = 30 * time.Second // after which that may be so
	exportLimit = 20 * time.Second // for an empty file; otherwise it takes milliseconds
	exportTries = 3                // for the network may take its time after a sleep; together less than 95 s
)

// absence records that this process has stood still for so long that the engine exports nothing to it
// any more.
type absence struct {
	once  sync.Once
	noted chan struct{} // closed then
	why   error         // set before
	now   func() time.Time
}

func newAbsence() *absence { return &absence{noted: make(chan struct{}), now: wallClock} }

func (a *absence) note(why error) {
	a.once.Do(func() {
		a.why = why
		close(a.noted)
	})
}

// bound returns a context derived from ctx that also ends once the absence is noted, for that
// reason. stop must be called.
func (a *absence) bound(ctx context.Context) (_ context.Context, stop func()) {
	ctx, end := context.WithCancelCause(ctx)
	select {
	case <-a.noted:
		end(a.why)
	default:
		go func() {
			select {
			case <-a.noted:
				end(a.why)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { end(nil) }
}

// Absent is why the engine exports nothing to this process any more, as far as Notice knows; nil
// if it does.
func (d *Deployment) Absent() error {
	select {
	case <-d.absence.noted:
		return d.absence.why
	default:
		return nil
	}
}

// Notice waits until this process, or its machine, has stood still for so long that the engine
// exports nothing to it any more, and returns that as a fault (CodeSessionEnded). From then on
// exports fail with it at once. It returns nil when ctx ends.
func (d *Deployment) Notice(ctx context.Context) error {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for last := d.absence.now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-second.C:
		}
		now := d.absence.now()
		stood := now.Sub(last)
		last = now
		if stood < standstill {
			continue
		}
		if err := d.tryExports(ctx); err != nil && ctx.Err() == nil {
			d.absence.note(sessionEnded(fmt.Errorf("this machine, or slipway on it, stood still for %s, so that the engine hands nothing over to it any more: %w", stood.Round(time.Second), err)))
			return d.absence.why
		}
		last = d.absence.now() // the time that the tries took is no standstill
	}
}

// wallClock is the time by a clock that goes on while the machine sleeps.
func wallClock() time.Time { return time.Now().Round(0) }

// tryExports has the engine export an empty file, several times if it does not.
func (d *Deployment) tryExports(ctx context.Context) error {
	next := time.NewTicker(exportLimit)
	defer next.Stop()
	for left := exportTries - 1; ; left-- {
		err := d.tryExport(ctx)
		if err == nil || left == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-next.C:
		}
	}
}

func (d *Deployment) tryExport(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, exportLimit, fmt.Errorf("exporting an empty file took longer than %s", exportLimit))
	defer cancel()
	var err error
	if folder := inFolder(func(dir string) error {
		_, err = d.client.Directory().WithNewFile("tried", "").File("tried").Export(ctx, filepath.Join(dir, "tried"))
		return nil
	}); folder != nil {
		return nil //nolint:nilerr // that says nothing of the engine
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Export exports a directory to a folder of this machine, and leaves what else is there. If ctx
// has ended before, or this process was absent, the error is why.
func (d *Deployment) Export(ctx context.Context, from *dagger.Directory, to string) error {
	ctx, stop := d.absence.bound(ctx)
	defer stop()
	_, err := from.Export(ctx, to, dagger.DirectoryExportOpts{Wipe: false})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
