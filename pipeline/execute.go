package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// execute runs n and its hooks and completes its result.
func (s *scheduler) execute(ctx context.Context, n *node) {
	r := &n.result
	err := s.call(ctx, n)
	switch {
	case err == nil && r.Detail.Reused:
		r.Status = Reused
	case err == nil:
		r.Status = Succeeded
	case errors.Is(err, ErrSkip):
		r.Status = Skipped
	case !n.cleanup && ctx.Err() != nil:
		r.Status, r.Err = Cancelled, err
	default:
		r.Status, r.Err = n.failed(), err
	}
	r.Finished = time.Now()
	if len(s.opts.Hooks) == 0 {
		return
	}
	last, release := s.uncancelled(ctx)
	defer release()
	if err = safely(func() error { return after(last, s.opts.Hooks, *r) }); err == nil {
		return
	}
	if r.Status != Cancelled {
		r.Status = n.failed()
	}
	r.Err = errors.Join(r.Err, err)
}

// call runs the hooks before n, then n itself, with a context that ends when they
// have returned.
func (s *scheduler) call(ctx context.Context, n *node) error {
	if n.cleanup {
		own, cancel := s.uncancelled(ctx)
		defer cancel()
		ctx = own
	}
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	return safely(func() error {
		if err := s.stages[n.key.Stage].before(own, s.opts.Hooks); err != nil {
			return err
		}
		if err := before(own, s.opts.Hooks, n.key); err != nil {
			return err
		}
		return n.step.run(own)
	})
}

// safely turns a panic into an error.
func safely(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return f()
}
