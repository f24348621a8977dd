package pipeline

import (
	"cmp"
	"context"
	"sync"
)

// stepContext is the context of a step: it ends with its parent, and at the latest
// with the step. Most steps of a large graph never wait for that, so a cancellable
// context is only made once Done is called.
type stepContext struct {
	context.Context //nolint:containedctx // it is a context itself
	verify          bool

	mu     sync.Mutex
	done   context.Context //nolint:containedctx // made by Done
	cancel context.CancelFunc
	ended  error // returned by Err once the step has ended; nil while it runs
	detail Detail
}

type (
	stepKey   struct{} // the *stepContext
	verifyKey struct{} // whether it, or one around it, may only verify
)

// Done returns a channel that is closed at the latest when the step ends.
func (c *stepContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done, c.cancel = context.WithCancel(c.Context)
		if c.ended != nil {
			c.cancel()
		}
	}
	return c.done.Done()
}

// Err returns a non-nil error once Done is closed.
func (c *stepContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != nil:
		return c.ended
	case c.done != nil:
		return c.done.Err()
	}
	return c.Context.Err()
}

// Value returns the step itself, or else a value of the parent context.
func (c *stepContext) Value(key any) any {
	switch key.(type) {
	case stepKey:
		return c
	case verifyKey:
		if c.verify {
			return true
		}
	}
	c.mu.Lock()
	from := c.Context
	if c.done != nil {
		from = c.done // so that derived contexts register with it without a goroutine
	}
	c.mu.Unlock()
	return from.Value(key)
}

// end cancels the context and returns what Describe recorded.
func (c *stepContext) end() Detail {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = cmp.Or(c.Context.Err(), context.Canceled)
	}
	if c.cancel != nil {
		c.cancel()
	}
	return c.detail
}

// Describe records details about the running step; the last call wins. ctx must be
// the step's context or one derived from it, otherwise Describe panics.
func Describe(ctx context.Context, d Detail) {
	c, ok := ctx.Value(stepKey{}).(*stepContext)
	if !ok {
		panic("pipeline: Describe without the context of a step")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.detail = d
}
