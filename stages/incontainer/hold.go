package incontainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// DefaultLockTimeout is how long a run waits for a live holder of the lock: the engine takes some seconds
// to end the session of a killed client, whose run goes on until then.
const DefaultLockTimeout = 15 * time.Second

// lock is the deployment's lock in its store. What waits for it says so on errw.
func (s *State) lock(errw io.Writer, patience time.Duration) *lock.Lock {
	gone := func(who lock.Holder) (func(), bool) { return s.backend.Gone(who.Run) }
	return lock.New(s.store, lock.Options{Gone: gone, Patience: patience, Waiting: func(r lock.Record, damage error, d time.Duration) {
		why := fmt.Sprintf("%s gave no sign of life", r.Holder)
		switch {
		case d == 0:
			say(errw, "lock", "waiting for %s", r.Holder)
			return
		case damage != nil:
			why = damage.Error()
		case r.State == lock.Forced:
			why = fmt.Sprintf("%s broke the lock of %s", r.Holder, r.After.Holder)
		}
		say(errw, "lock", "%s; waiting up to %s, as a run may still be ending", why, d.Round(time.Second))
	}})
}

// say reports progress to the process that started this container.
func say(w io.Writer, step, format string, args ...any) {
	_, _ = io.WriteString(w, contract.Line(os.Getenv(contract.OriginVariable), contract.StageInfrastructure+"/"+step, fmt.Sprintf(format, args...)))
}

// hold takes the deployment's lock, listens on the request's port, and releases the lock when stop is
// closed; while something still works for the run, it leaves the lock to expire. A store that cannot be
// used is a fault of class preflight: the run has changed nothing yet.
func (s *State) hold(ctx context.Context, stop <-chan struct{}, req contract.HoldInput) error {
	if err := state.CheckRuntime(ctx, s.store); err != nil {
		return store.Preflight(err)
	}
	if err := state.CheckProvider(ctx, s.backend, s.store, os.Getenv(contract.ProviderVariable)); err != nil {
		return store.Preflight(err)
	}
	end, err := s.backend.Holds(ctx, req.Who.Run)
	if err != nil {
		return fmt.Errorf("note that the run holds the lock: %w", err)
	}
	taking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-stop: // while Acquire waits, or the lock is held
			cancel(errStopped)
		case <-taking.Done():
		}
	}()
	// Not 0: the holder may have been killed since its last heartbeat.
	held, lease, err := s.lock(s.errw, max(time.Duration(req.Patience), 1)).Acquire(taking, req.Who)
	switch {
	case errors.Is(err, errStopped):
		return end() // before it had the lock
	case err != nil:
		return errors.Join(store.Preflight(err), end())
	}
	if err := listenWhile(held, req.Port); !errors.Is(context.Cause(held), errStopped) {
		return errors.Join(err, lease.Release(ctx), end())
	}
	return errors.Join(s.release(ctx, req.Who.Run, lease), end())
}

// workLimit is how long the engine may take to kill what works for a run that has ended.
const workLimit = 5 * time.Second

// release releases the lock once nothing works for the run any more.
func (s *State) release(ctx context.Context, run string, lease *lock.Lease) error {
	for begun := time.Now(); ; {
		if done, idle := s.backend.Idle(run); idle {
			defer done()
			return lease.Release(ctx)
		}
		if time.Since(begun) > workLimit {
			return lease.Leave(ctx)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// watch returns once run has lost the lock, with the fault that says why. The watch counts as a holder
// of the lock: nothing else shows that a hook, which is the user's program, has ended.
func (s *State) watch(ctx context.Context, run string) (err error) {
	end, err := s.backend.Holds(ctx, run)
	if err != nil {
		return fmt.Errorf("note that the run watches the lock: %w", err)
	}
	defer func() { err = errors.Join(err, end()) }()
	l := s.lock(s.errw, 0)
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

// wipe empties the cluster's volume by a command, which a lost lock kills, and forgets the cluster.
func (s *State) wipe(ctx context.Context, run string, args []string) error {
	return s.under(ctx, run, func(ctx context.Context, w *state.Work) error {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = s.errw, s.errw
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("run %v: %w", args, err)
		}
		return s.backend.ForgetCluster(ctx, w)
	})
}

// errStopped is why the lock is not waited for or held any longer.
var errStopped = errors.New("it was told to end")

// listenWhile listens on port, and accepts nothing, until ctx ends, and returns why.
func listenWhile(ctx context.Context, port int) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("say that the lock is held: %w", err)
	}
	<-ctx.Done()
	_ = listener.Close()
	return context.Cause(ctx)
}

// awaitPods waits, two minutes at most, until the pods that ran before the local cluster was stopped run
// again, as its node says at url, and reports on errw those that do not.
func awaitPods(ctx context.Context, kubeconfig, url string, errw io.Writer) error {
	client, err := kube.Connect(kubeconfig, func(format string, args ...any) { say(errw, "node", format, args...) })
	if err == nil {
		readiness.AwaitPods(ctx, client, url)
	}
	return err
}
