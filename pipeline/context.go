package pipeline

import (
	"cmp"
	"context"
	"sync"
)

// stepContext is the context of a step: it ends with what it is made from, and at
// the latest with the step. Most steps of a large graph never wait for that, so
// it becomes one that can be cancelled only when it is asked for Done.
type stepContext struct {
	context.Context //nolint:containedctx // it is a context itself
	verify          bool

	mu     sync.Mutex
	done   context.Context //nolint:containedctx // made by Done
	cancel context.CancelFunc
	ended  error // what Err is for ever; nil while the step runs
	detail Detail
}

type (
	stepKey   struct{} // the *stepContext
	verifyKey struct{} // whether it, or one around it, may only verify
)

// Done is closed at the latest when the step has ended.
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

// Err is not nil once Done is closed.
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

// Value finds the step beside the values of what the context is made from.
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
		from = c.done // so that contexts made from this one hang on that one
	}
	c.mu.Unlock()
	return from.Value(key)
}

// end cancels the context and returns what the step has said about itself.
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

// Describe records what a step says about itself; the last call before its end
// counts. ctx is the step's context or one made from it; with another one it
// panics.
func Describe(ctx context.Context, d Detail) {
	c, ok := ctx.Value(stepKey{}).(*stepContext)
	if !ok {
		panic("pipeline: Describe without the context of a step")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.detail = d
}
