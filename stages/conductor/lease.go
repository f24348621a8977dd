package conductor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/lock"
)

// lease is the deployment's lock while a run has it, or tries to get it. A nil
// one is for what needs no lock.
type lease struct {
	hold  *containers.Hold
	taken chan struct{} // closed once it is held
	tried chan struct{} // closed when it is known whether it is
}

// takeLock begins to take the lock for a run. It takes a container, so what
// changes nothing goes on meanwhile. The context that it returns ends with the
// fault when the lock cannot be had.
func (c *Conductor) takeLock(ctx context.Context, workflow string) (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(ctx)
	l := &lease{taken: make(chan struct{}), tried: make(chan struct{})}
	l.hold = c.deployment.Hold("slipway", "state", "hold",
		"--user", c.opts.User, "--host", c.opts.Host, "--run", c.run, "--workflow", workflow,
		"--patience", c.opts.LockTimeout.String())
	c.lease = l
	go func() {
		defer close(l.tried)
		if err := l.hold.Start(ctx); err != nil {
			end(err)
			return
		}
		close(l.taken)
	}()
	return ctx, end
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

// held waits until it is known whether the lock was taken, and tells it.
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

// locked is run, once the lock is held.
func (c *Conductor) locked(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := c.lease.wait(ctx); err != nil {
			return err
		}
		return run(ctx)
	}
}

// lockHook keeps what runs before the whole workflow until the lock is held.
func (c *Conductor) lockHook() pipeline.Hook {
	return pipeline.Hook{Before: func(ctx context.Context, _ pipeline.Key) error { return c.lease.wait(ctx) }}
}

// Unlock takes the deployment's lock away from its holder and records who did so
// and why. Without force it does so only when the holder gives no sign of life.
// It returns the record that was written.
func (c *Conductor) Unlock(ctx context.Context, reason string, force bool) (*lock.Record, error) {
	const at = "/slipway/unlocked.json"
	args := []string{"slipway", "state", "unlock", at, "--user", c.opts.User, "--host", c.opts.Host, "--reason", reason}
	if force {
		args = append(args, "--force")
	}
	var r lock.Record
	err := c.ask(ctx, args, at, &r)
	return &r, err
}

// ask runs a state command that writes JSON to a file, or tells its fault.
func (c *Conductor) ask(ctx context.Context, args []string, file string, answer any) error {
	return c.answer(ctx, containers.Exec{Args: args, Result: file}, answer)
}

// answer runs a command of Slipway's of which the result is JSON, and decodes that.
// Its error is the fault that the command told.
func (c *Conductor) answer(ctx context.Context, e containers.Exec, answer any) error {
	done, err := c.deployment.Exec(ctx, e)
	if err != nil {
		return err
	}
	if err := ended(e.Args, done); err != nil {
		return err
	}
	if done.Result == nil {
		return fmt.Errorf("run %v: no answer: %s", e.Args, containers.Complaint(done.Stderr))
	}
	if err := json.Unmarshal(done.Result, answer); err != nil {
		return fmt.Errorf("decode the answer of %v: %w", e.Args, err)
	}
	return nil
}
