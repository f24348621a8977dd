package conductor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/contract"
)

// deploymentLock is the lock that a run holds or tries to take; nil if it needs none.
type deploymentLock struct {
	hold  *containers.Hold
	taken chan struct{} // closed once the lock is held
	tried chan struct{} // closed once the attempt to take it has ended

	refused atomic.Pointer[error] // why it cannot be taken; set before the run's context ends for that

	once sync.Once
	lost chan struct{}     // closed once it is known to be lost
	why  error             // set before lost is closed
	halt chan error        // yields why no other step may start, once
	end  func(cause error) // ends the run's context

	aside sync.WaitGroup // what takes it, and what watches it
}

// takeLock begins to take the lock for a run, and to open the state under it; steps that change nothing
// run meanwhile. The returned context ends with a fault if the lock cannot be taken, and some time after
// it was lost. Close the lock after the returned function has ended that context.
func (r *run) takeLock(ctx context.Context) (context.Context, *deploymentLock, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(ctx)
	l := &deploymentLock{taken: make(chan struct{}), tried: make(chan struct{}), lost: make(chan struct{}), halt: make(chan error, 1), end: end}
	hold, err := stateCommand(contract.HoldLock, contract.HoldInput{Who: r.who(), Patience: contract.Duration(r.opts.LockTimeout), Port: containers.HoldPort})
	l.hold = r.Cluster.deployment.Hold(hold...)
	l.aside.Go(func() {
		defer close(l.tried)
		if err != nil {
			l.refuse(ctx, err)
			return
		}
		if err := l.hold.Start(ctx); err != nil {
			l.refuse(ctx, err)
			return
		}
		err := r.open(ctx)
		if err == nil && ctx.Err() == nil {
			close(l.taken)
			l.aside.Go(func() { l.watch(ctx, r.commands, r.steps.requests.Run) })
			return
		}
		if ctx.Err() == nil {
			err = containers.NotHeld("open the deployment's state", err)
		} else {
			err = context.Cause(ctx)
		}
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		if left := l.hold.Stop(stopping); left != nil {
			err = errors.Join(err, left)
		}
		l.refuse(ctx, err)
	})
	return ctx, l, end
}

// refuse ends the run, which does not get the lock.
func (l *deploymentLock) refuse(ctx context.Context, why error) {
	if ctx.Err() == nil { // else somebody else has ended it
		l.refused.Store(&why)
	}
	l.end(why)
}

// close returns once nothing that was begun for the lock runs any more.
func (l *deploymentLock) close() {
	if l != nil {
		l.aside.Wait()
	}
}

// watch has a container watch the lock until ctx ends: nothing else shows that its holder has ended.
func (l *deploymentLock) watch(ctx context.Context, c commands, run string) {
	watch := func() error {
		if _, err := query(ctx, c, containers.Exec{}, contract.WatchLock, contract.HeldInput{Who: lock.Holder{Run: run}}); err != nil {
			return err
		}
		return errors.New("the lock is not watched any more") // it ends with an error or not at all
	}
	err := watch()
	if ctx.Err() == nil && fault.ClassOf(err) != fault.Locked { // its container was killed
		err = watch()
	}
	if ctx.Err() == nil {
		l.lose(err)
	}
}

// lose notes that the lock was lost. Only clean-up steps start after that. Steps watch the lock and end in
// good order; the run's context ends when others may take the lock over.
func (l *deploymentLock) lose(err error) {
	l.once.Do(func() {
		l.why = err
		close(l.lost)
		l.halt <- err
		time.AfterFunc(lock.DefaultBeat+lock.DefaultGrace, func() { l.end(err) })
	})
}

// noteLoss returns err, unless it says that the lock was lost, which is noted.
func (l *deploymentLock) noteLoss(err error) error {
	if l == nil || !errors.Is(err, &fault.Fault{Code: lock.CodeLost}) {
		return err
	}
	l.lose(err)
	return nil
}

// loss is why the lock was lost; nil while that is not known.
func (l *deploymentLock) loss() error {
	if l == nil {
		return nil
	}
	select {
	case <-l.lost:
		return l.why
	default:
		return nil
	}
}

// bound is ctx that also ends when the lock is lost, for what does not watch the lock. Call stop.
func (l *deploymentLock) bound(ctx context.Context) (_ context.Context, stop func()) {
	ctx, end := context.WithCancelCause(ctx)
	if l != nil {
		go func() {
			select {
			case <-l.lost:
				end(l.why)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { end(nil) }
}

// wait returns once the lock is held, or with the reason why it cannot be taken or was lost.
// A clean-up step, whose context outlasts that, is skipped then: the run has made nothing.
func (l *deploymentLock) wait(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case <-l.taken:
		return l.loss()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.tried:
		switch {
		case l.held():
			return l.loss()
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

// refusal is why the lock cannot be taken; nil while that is not known, or if the run ended before.
func (l *deploymentLock) refusal() error {
	if why := l.refused.Load(); why != nil {
		return *why
	}
	return nil
}

// release releases the lock if it is held, also after ctx has ended.
func (l *deploymentLock) release(ctx context.Context) error {
	if l == nil || !l.held() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	if l.loss() != nil {
		_ = l.hold.Kill(ctx) // there is nothing to release, and most often nobody to end
		return nil
	}
	err := l.hold.Stop(ctx)
	if err == nil || l.loss() != nil {
		return nil
	}
	return &fault.Fault{
		Code: lock.CodeRelease, Class: fault.Step, Op: "release the deployment's lock", Err: err,
		Fix: "nothing; the next run can take it once it has expired",
	}
}

// under makes a hook wait for the lock, because it may change something, and skips it without the lock.
func (l *deploymentLock) under(h pipeline.Hook) pipeline.Hook {
	before, after := h.Before, h.After
	if before != nil {
		h.Before = func(ctx context.Context, key pipeline.Key) error {
			if err := l.wait(ctx); err != nil {
				return err
			}
			return before(ctx, key)
		}
	}
	if after != nil {
		h.After = func(ctx context.Context, on pipeline.Result) error {
			if !l.held() {
				return nil
			}
			return after(ctx, on)
		}
	}
	return h
}
