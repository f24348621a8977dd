package incontainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// DefaultLockTimeout is how long a run waits by default for a holder that is alive: the
// engine takes some seconds to end the session of a client that was killed, and
// until then that run goes on.
const DefaultLockTimeout = 15 * time.Second

// openLock is the deployment's lock in its store.
func openLock(s *store.Store, errw io.Writer) *lock.Lock {
	return lock.New(s, lock.Options{Waiting: func(r lock.Record, d time.Duration) {
		if r.State == lock.Forced {
			say(errw, "lock", "%s broke the lock of %s, which may still be ending; waiting up to %s", r.Holder, r.After.Holder, d.Round(time.Second))
			return
		}
		say(errw, "lock", "%s gave no sign of life; waiting up to %s for one, as it may still be ending", r.Holder, d.Round(time.Second))
	}})
}

// say reports progress to the process that started this container.
func say(w io.Writer, step, format string, args ...any) {
	_, _ = io.WriteString(w, contract.Line(os.Getenv(contract.OriginVariable), contract.StageInfrastructure+"/"+step, fmt.Sprintf(format, args...)))
}

// Hold takes the deployment's lock, waiting up to timeout for a live holder, listens on
// containers.HoldPort, and releases the lock when stop is closed. A store that cannot be
// used is a fault of class preflight: the run has changed nothing yet.
func (s *State) Hold(ctx context.Context, stop <-chan struct{}, who lock.Holder, timeout time.Duration) error {
	if err := state.CheckRuntime(ctx, s.store); err != nil {
		return store.Preflight(err)
	}
	if err := state.CheckProvider(ctx, s.place, s.store, os.Getenv(contract.ProviderVariable)); err != nil {
		return store.Preflight(err)
	}
	held, lease, err := acquire(ctx, s.errw, stop, openLock(s.store, s.errw), who, timeout)
	switch {
	case errors.Is(err, errStopped):
		return nil // before it had the lock
	case err != nil:
		return store.Preflight(err)
	}
	err = listenWhile(held, stop)
	return errors.Join(err, lease.Release(ctx))
}

// Watch returns once run has lost the lock, with the fault that says why. A store that
// cannot be used at first is given as long to answer as later on.
func (s *State) Watch(ctx context.Context, run string) error {
	l := openLock(s.store, s.errw)
	for begun := time.Now(); ; {
		watched, w, err := l.Watch(ctx, run)
		if err == nil {
			defer w.Stop()
			<-watched.Done()
			return context.Cause(watched)
		}
		if fault.ClassOf(err) == fault.Locked || time.Since(begun) > lock.DefaultTTL {
			return err
		}
		select {
		case <-time.After(lock.DefaultBeat):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// acquire takes the lock. A holder whose last heartbeat is recent may have been killed
// since: it counts as alive only once another heartbeat arrives, and as dead once the
// last one has expired. acquire waits up to timeout for a live holder.
func acquire(ctx context.Context, errw io.Writer, stop <-chan struct{}, l *lock.Lock, who lock.Holder, timeout time.Duration) (context.Context, *lock.Lease, error) {
	waiting, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-stop: // also while Acquire waits for one that seems dead
			end(errStopped)
		case <-done:
		}
	}()
	var last *lock.HeldError // as it was seen last
	var changed time.Time    // when that was new; zero: never
	for started := time.Now(); ; {
		held, lease, err := l.Acquire(waiting, who)
		now, isHeld := errors.AsType[*lock.HeldError](err)
		if !isHeld {
			return held, lease, err
		}
		if last == nil {
			say(errw, "lock", "waiting for %s", now)
		} else if now.Record.Generation != last.Record.Generation || !now.Record.Beat.Equal(last.Record.Beat) {
			changed = time.Now()
		}
		last = now
		if !changed.IsZero() && time.Since(changed) < lock.DefaultBeat && time.Since(started) >= timeout {
			return nil, nil, err
		}
		select {
		case <-time.After(lock.DefaultBeat / 4):
		case <-waiting.Done():
			return nil, nil, err
		}
	}
}

// errStopped is why the lock is not waited for any longer.
var errStopped = errors.New("it was told to end")

// listenWhile listens on containers.HoldPort until stop is closed or ctx ends.
func listenWhile(ctx context.Context, stop <-chan struct{}) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(containers.HoldPort)))
	if err != nil {
		return fmt.Errorf("say that the lock is held: %w", err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			_ = conn.Close()
		}
	}()
	select {
	case <-stop:
		err = nil
	case <-ctx.Done():
		if err = context.Cause(ctx); errors.Is(err, errStopped) {
			err = nil
		}
	}
	_ = listener.Close()
	<-served
	return err
}
