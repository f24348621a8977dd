package pipeline

import (
	"context"
	"errors"
	"time"
)

// DefaultCleanupTimeout is how long a clean-up step may take when
// Options.CleanupTimeout is zero.
const DefaultCleanupTimeout = 2 * time.Minute

// Options configures Run. The zero value is ready to use.
type Options struct {
	// Until limits the run to its targets and all that is before them, by needs and by Settled
	// alike; empty: all steps. A target is "stage" (all steps of it) or "stage/step". The other
	// steps are Unselected.
	//
	// Clean-up steps (see Settled) cannot be targets. They run when one of the steps that they
	// settle on takes part, so a clean-up step should settle on every step whose effects it
	// undoes, not only on the last one.
	Until []string
	// Parallel limits how many steps run at the same time; 0: no limit.
	Parallel int
	// Stop, once closed, ends the run after the steps that are running: they finish
	// and no other starts. Nil: never.
	Stop <-chan struct{}
	// Halt, once it yields an error, ends the run as Stop does; the error is the cause.
	// Nil: never.
	Halt <-chan error
	// CleanupTimeout limits each clean-up step (see Settled), the hooks after
	// steps and the diagnosis; 0: DefaultCleanupTimeout.
	CleanupTimeout time.Duration
	// Hooks run around steps, in their order.
	Hooks []Hook
	// Observe is called when a step starts and when its status is final; for steps
	// that are Unselected, before any step starts. Calls do not overlap, and the run
	// waits for them. May be nil.
	Observe func(Event)
	// Diagnose looks for the cause when steps have failed, once per run. failed
	// are the results of those steps, in the order in which they were added;
	// never empty, and without those that only warned.
	//
	// It is called when no step runs and only clean-up steps, and steps that need
	// them, can still start. Clean-up steps that are ready after a failure wait for
	// it, so that what they would stop or remove can still be inspected. If the
	// first step to fail is a clean-up step, it is called after that.
	//
	// Its context is not cancelled with the run's and ends after CleanupTimeout.
	// An error or panic does not change the run's error or results. May be nil.
	Diagnose func(ctx context.Context, failed []Result) error
}

// Event is a change of a step's status: to Running, or to a final status.
type Event struct {
	Time   time.Time
	Status Status
	Result Result // complete when the status is final; only key and start before
}

// Run runs the steps, each once all that it needs has succeeded, and returns
// when every step has ended. Steps that do not depend on each other run at the
// same time. A step that fails blocks those that need it and no other.
//
// Cancelling ctx cancels the running steps and starts no others; Options.Stop and
// Options.Halt let the running ones finish. Clean-up steps run in each case.
//
// The results are in the order in which the steps were added. The error joins,
// in the same order, a *StepError for each step that failed, then a fault with
// a *CancelError when the run was stopped or cancelled before every step had
// run, listing the steps that were left. A target or hook that names a step that does
// not exist is an error: nothing runs and there are no results. Run panics when it is
// called a second time.
func (p *Pipeline) Run(ctx context.Context, opts Options) ([]Result, error) {
	if p.sealed {
		panic("pipeline: run twice")
	}
	p.sealed = true
	if err := errors.Join(p.limit(opts.Until), p.checkHooks(opts.Hooks)); err != nil {
		return nil, err
	}
	if opts.CleanupTimeout <= 0 {
		opts.CleanupTimeout = DefaultCleanupTimeout
	}
	s := &scheduler{p: p, opts: opts, ended: make(chan *node, len(p.nodes)), stop: opts.Stop, halted: opts.Halt, stages: p.stages(opts.Hooks)}
	started := time.Now()
	if err := safely(func() error { return before(ctx, opts.Hooks, Key{}) }); err != nil {
		s.refused = err
	}
	s.loop(ctx)
	results, errs := s.outcome()
	err := errors.Join(errs...)

	last, release := s.uncancelled(ctx)
	defer release()
	whole := Result{Status: Succeeded, Err: err, Started: started, Finished: time.Now()}
	if err != nil {
		whole.Status = Failed
	}
	errs = append(errs, safely(func() error { return after(last, opts.Hooks, whole) }))
	return results, errors.Join(errs...)
}

// uncancelled returns ctx without its cancellation but with the clean-up timeout.
func (s *scheduler) uncancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.opts.CleanupTimeout)
}

func (s *scheduler) outcome() ([]Result, []error) {
	results := make([]Result, len(s.p.nodes))
	var errs []error
	var left CancelError
	for i, n := range s.p.nodes {
		r := n.result
		results[i] = r
		switch {
		case r.Status == Failed:
			errs = append(errs, &StepError{r.Stage, r.Name, r.Err})
		case r.Status == Cancelled && r.Started.IsZero():
			left.Unstarted = append(left.Unstarted, r.Key)
		case r.Status == Cancelled:
			left.Interrupted = append(left.Interrupted, r.Key)
		}
	}
	switch {
	case len(s.spoiled) > 0 && !s.stopped:
	case s.refused != nil:
		errs = append(errs, s.refused)
	case len(left.Unstarted)+len(left.Interrupted) > 0:
		left.Cause = s.cause
		errs = append(errs, cancelled(&left))
	}
	errs = append(errs, s.spoiled...)
	return results, errs
}
