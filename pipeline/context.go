package pipeline

import (
	"context"
	"sync"
)

// execution is a step while it runs.
type execution struct {
	mu     sync.Mutex
	detail Detail
}

type (
	stepKey   struct{} // the *execution
	verifyKey struct{} // whether it, or one around it, may only verify
)

// in returns a context for the step, derived from ctx.
func (e *execution) in(ctx context.Context, verify bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithValue(ctx, stepKey{}, e))
	if verify {
		ctx = context.WithValue(ctx, verifyKey{}, true)
	}
	return ctx, cancel
}

// described returns what Describe recorded.
func (e *execution) described() Detail {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.detail
}

// Describe records details about the running step; the last call wins. ctx must be
// the step's context or one derived from it, otherwise Describe panics.
func Describe(ctx context.Context, d Detail) {
	e, ok := ctx.Value(stepKey{}).(*execution)
	if !ok {
		panic("pipeline: Describe without the context of a step")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.detail = d
}
