package conductor

import (
	"context"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/pipeline"
)

// deploymentLock is the deployment's lock while a run has it, or tries to get it. A nil
// one is for what needs no lock.
type deploymentLock struct {
	hold  *containers.Hold
	taken chan struct{} // closed once the lock is held
	tried chan struct{} // closed once the attempt to take it has ended
}

// takeLock begins to take the lock for a run. It takes a container, so what
// changes nothing goes on meanwhile. The context that it returns ends with the
// fault when the lock cannot be had.
func (r *run) takeLock(ctx context.Context) (context.Context, *deploymentLock, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(ctx)
	l := &deploymentLock{taken: make(chan struct{}), tried: make(chan struct{})}
	l.hold = r.Cluster.deployment.Hold("slipway", "state", "hold", "--user", r.opts.User, "--host", r.opts.Host,
		"--run", r.steps.requests.run, "--workflow", r.workflow.Name, "--patience", r.opts.LockTimeout.String())
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
func (l *deploymentLock) wait(ctx context.Context) error {
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
func (l *deploymentLock) held() bool {
	<-l.tried
	select {
	case <-l.taken:
		return true
	default:
		return false
	}
}

// release gives the lock up, if it is held.
func (l *deploymentLock) release(ctx context.Context) error {
	if l == nil || !l.held() {
		return nil
	}
	return l.hold.Stop(ctx)
}

// hook holds up what runs before the whole workflow until the lock is held.
func (l *deploymentLock) hook() pipeline.Hook {
	return pipeline.Hook{Before: func(ctx context.Context, _ pipeline.Key) error { return l.wait(ctx) }}
}
