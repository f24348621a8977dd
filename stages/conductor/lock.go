package conductor

import (
	"context"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/pipeline"
)

// deploymentLock is the deployment's lock, which a run holds or is trying to take. It is
// nil if no lock is needed.
type deploymentLock struct {
	hold  *containers.Hold
	taken chan struct{} // closed once the lock is held
	tried chan struct{} // closed once the attempt to take it has ended
}

// takeLock begins to take the lock for a run. Taking it starts a container; steps that
// change nothing run meanwhile. The returned context ends with the fault if the lock
// cannot be taken.
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

// wait returns once the lock is held, or with the reason why it cannot be taken. A clean-up
// step, whose context outlasts that, is skipped then: the run has made nothing.
func (l *deploymentLock) wait(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case <-l.taken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.tried:
		switch {
		case l.held():
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		return pipeline.ErrSkip
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

// release releases the lock if it is held.
func (l *deploymentLock) release(ctx context.Context) error {
	if l == nil || !l.held() {
		return nil
	}
	return l.hold.Stop(ctx)
}

// hook delays the hooks before the whole workflow until the lock is held.
func (l *deploymentLock) hook() pipeline.Hook {
	return pipeline.Hook{Before: func(ctx context.Context, _ pipeline.Key) error { return l.wait(ctx) }}
}
