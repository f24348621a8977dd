package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/fault"
)

// ErrSkip, returned by a step or by a hook before it, skips the step and all
// steps that need it. It is not a failure.
var ErrSkip = errors.New("skipped")

// ErrStopped is the cause of a run that Options.Stop ended.
var ErrStopped = errors.New("stopped on request")

// The codes of this package's faults.
const (
	// CodeCancelled: the run was stopped.
	CodeCancelled fault.Code = "RUN-001"
	// CodeTimeout: the run's deadline passed.
	CodeTimeout fault.Code = "RUN-002"
	// CodeSelection: a selection names a stage or step that does not exist.
	CodeSelection fault.Code = "RUN-004"
)

// StepError is the error of a step that failed.
type StepError struct {
	Stage string
	Step  string
	Err   error
}

// Error returns "stage/step: " and the step's own error.
func (e *StepError) Error() string { return e.Stage + "/" + e.Step + ": " + e.Err.Error() }

// Unwrap returns the step's own error.
func (e *StepError) Unwrap() error { return e.Err }

// BlockedError names the failed steps that prevented a step from starting.
type BlockedError struct {
	By []Key // the steps that failed, without those blocked in between; in the order of adding
	by []*node
}

func (e *BlockedError) Error() string { return "blocked by " + names(e.By) }

// names joins the keys of steps with commas.
func names(keys []Key) string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = k.String()
	}
	return strings.Join(all, ", ")
}

// CancelError reports what a stopped or cancelled run left undone.
type CancelError struct {
	Cause       error
	Interrupted []Key // steps that were running and did not succeed
	Unstarted   []Key // steps that would have run; in the order of adding, as above
}

func (e *CancelError) Error() string {
	return fmt.Sprintf("%v (steps interrupted: %d, not started: %d)", e.Cause, len(e.Interrupted), len(e.Unstarted))
}

// Unwrap returns the cause.
func (e *CancelError) Unwrap() error { return e.Cause }

// cancelled wraps a CancelError in a fault, unless its cause is one already.
func cancelled(e *CancelError) error {
	if _, ok := errors.AsType[*fault.Fault](e.Cause); ok {
		return e
	}
	f := &fault.Fault{
		Code: CodeCancelled, Class: fault.Cancelled, Op: "run the pipeline", Err: e,
		Fix: "run the same command again; what is finished is not repeated",
	}
	if errors.Is(e.Cause, context.DeadlineExceeded) {
		f.Code, f.Class = CodeTimeout, fault.Timeout
		if len(e.Interrupted) > 0 {
			f.Err = fmt.Errorf("%w; last seen running: %s", e, names(e.Interrupted))
		}
		f.Fix = "run the same command again, with more time; what is finished is not repeated"
	}
	return f
}
