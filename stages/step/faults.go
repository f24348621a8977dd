package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// The codes of faults that come from running a step, whatever the step does.
const (
	// codeFailed: a step failed with an error that has no code of its own.
	codeFailed fault.Code = "STP-001"
	// codeSecret: a secret is in a step's output, which was therefore not kept.
	codeSecret fault.Code = "STP-007"
)

const fixStep = "look at the step's log, then run the same command again"

var errSecret = errors.New("the output holds a secret")

// badRequest is the fault of a part of the request, "request" or "input".
func badRequest(part string, err error) *fault.Fault {
	return &fault.Fault{
		Code: fault.CodeBug, Class: fault.Bug, Op: "read the step's " + part,
		Fix: "build the bundle again from this version of Slipway: make bundle", Err: err,
	}
}

// badState is the fault of a state that cannot be written; a fault of the store has its own fix.
func badState(op string, err error) *fault.Fault {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		own := *f
		return &own
	}
	const fix = "free space on the machine that runs the Dagger engine, then run the same command again"
	return &fault.Fault{Code: store.CodeFull, Class: fault.Step, Op: op, Fix: fix, Err: err}
}

// ClassOf returns the class of a fault around err, which made a step fail: that of the
// fault in err, else the one for what ended a context, else Step.
func ClassOf(err error) fault.Class {
	f, coded := errors.AsType[*fault.Fault](err)
	switch {
	case coded:
		return f.Class
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Timeout
	case errors.Is(err, context.Canceled):
		return fault.Cancelled
	}
	return fault.Step
}

// panicked is what a recovered panic becomes. The stack goes to the log only.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// classify turns an error of the step, whose context is ctx, into the fault that the user gets.
func (e *Env) classify(ctx context.Context, timeout time.Duration, err error) *fault.Fault {
	f, coded := errors.AsType[*fault.Fault](err)
	if p, ok := errors.AsType[*panicked](err); ok {
		return &fault.Fault{
			Code: fault.CodeBug, Class: fault.Bug, Op: "run " + e.ID,
			Fix: "report this with the step's log: slipway report", Err: p,
		}
	}
	if lost, ok := errors.AsType[*fault.Fault](lock.Lost(ctx)); ok {
		f := *lost
		return &f
	}
	if ctx.Err() != nil && (!coded || f.Class != fault.Timeout) {
		if errors.Is(context.Cause(ctx), errTimeUp) {
			fix := fixStep
			if coded && f.Fix != "" {
				fix = f.Fix
			}
			return &fault.Fault{
				Code: pipeline.CodeTimeout, Class: fault.Timeout, Op: "run " + e.ID, Fix: fix,
				Err: fmt.Errorf("not finished within %s; its last message was %q: %w", timeout, e.lastSaid(), err),
			}
		}
		cause := err
		if !errors.Is(err, context.Cause(ctx)) {
			cause = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return &fault.Fault{
			Code: pipeline.CodeCancelled, Class: fault.Cancelled, Op: "run " + e.ID,
			Fix: "run the same command again; finished steps are not repeated",
			Err: cause,
		}
	}
	if whole, ok := fault.Whole(err); ok {
		return whole
	}
	return &fault.Fault{Code: codeFailed, Class: fault.Step, Op: "run " + e.ID, Fix: fixStep, Err: err}
}
