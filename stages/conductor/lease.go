package conductor

import (
	"context"
	"time"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/pipeline"
)

// lease is the deployment's lock while a run has it, or tries to get it. A nil
// one is for what needs no lock.
type lease struct {
	hold  *containers.Hold
	taken chan struct{} // closed once the lock is held
	tried chan struct{} // closed once the attempt to take it has ended
}

// holder says who takes the lock, for others to read.
type holder struct {
	user, host, run, workflow string
	patience                  time.Duration // with another holder that is alive
}

// takeLock begins to take the lock for a run. It takes a container, so what
// changes nothing goes on meanwhile. The context that it returns ends with the
// fault when the lock cannot be had.
func takeLock(ctx context.Context, d *containers.Deployment, by holder) (context.Context, *lease, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(ctx)
	l := &lease{taken: make(chan struct{}), tried: make(chan struct{})}
	l.hold = d.Hold("slipway", "state", "hold",
		"--user", by.user, "--host", by.host, "--run", by.run, "--workflow", by.workflow, "--patience", by.patience.String())
	go func() {
		defer close(l.tried)
		if err := l.hold.Start(ctx); err != nil {
			end(err)
			return
		}
		close(l.taken)
	}()
	return ctx, l, end
}

// wait returns once the lock is held, or with why it never will be.
func (l *lease) wait(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case <-l.taken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// held waits until it is known whether the lock was taken, and reports it.
func (l *lease) held() bool {
	<-l.tried
	select {
	case <-l.taken:
		return true
	default:
		return false
	}
}

// release gives the lock up, if it is held.
func (l *lease) release(ctx context.Context) error {
	if l == nil || !l.held() {
		return nil
	}
	return l.hold.Stop(ctx)
}

// hook holds up what runs before the whole workflow until the lock is held.
func (l *lease) hook() pipeline.Hook {
	return pipeline.Hook{Before: func(ctx context.Context, _ pipeline.Key) error { return l.wait(ctx) }}
}
