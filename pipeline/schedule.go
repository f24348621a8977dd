package pipeline

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// scheduler decides when each step starts. Its fields belong to the goroutine that
// called Run.
type scheduler struct {
	p       *Pipeline
	opts    Options
	workers sync.WaitGroup
	ended   chan *node // steps that have ended; it has room for all
	running int        // steps that were started and not settled
	stop    <-chan struct{}
	halted  <-chan error
	cause   error             // why no more steps start; nil while they do
	stopped bool              // cause is a stop or a cancellation
	refused error             // returned by a hook before the run
	spoiled []error           // returned by hooks after stages
	stages  map[string]*stage // those with hooks around them
	failed  int               // how many steps have failed
	asked   bool              // Options.Diagnose was called
}

// loop runs until every step has a final status.
func (s *scheduler) loop(ctx context.Context) {
	if s.refused != nil {
		s.halt(s.refused)
	}
	for _, n := range s.p.nodes {
		if n.out {
			n.result = Result{Key: n.key, Status: Unselected}
			s.settle(ctx, n)
		}
	}
	ctxDone := ctx.Done()
	for {
		s.checkStop(ctx)
		s.advance(ctx)
		if s.running == 0 {
			// Either nothing is left, or only clean-up steps that wait for the diagnosis.
			if !s.diagnose(ctx) {
				break
			}
			continue
		}
		select {
		case n := <-s.ended:
			s.running--
			s.settle(ctx, n)
		case <-s.stop: // checkStop handles this and the end of ctx
		case cause := <-s.halted:
			s.halted = nil
			s.end(cause)
		case <-ctxDone:
			ctxDone = nil
		}
	}
	s.workers.Wait()
}

// checkStop notices a stop or a cancellation, so that nothing starts after it.
func (s *scheduler) checkStop(ctx context.Context) {
	select {
	case <-s.stop:
		s.stop = nil
		s.end(ErrStopped)
	case cause := <-s.halted:
		s.halted = nil
		s.end(cause)
	default:
		s.end(context.Cause(ctx))
	}
}

// end stops the run for a cause, unless that is nil or the run is stopped already.
func (s *scheduler) end(cause error) {
	if cause != nil && s.cause == nil {
		s.stopped = true
		s.halt(cause)
	}
}

// halt prevents further steps from starting.
func (s *scheduler) halt(cause error) { s.cause = cmp.Or(s.cause, cause) }

// advance settles and starts every step that can be. One pass is enough: a step comes after
// all that it needs.
func (s *scheduler) advance(ctx context.Context) {
	for _, n := range s.p.nodes {
		if n.started || n.final.Load() || slices.ContainsFunc(n.needs, func(e edge) bool { return !e.to.final.Load() }) {
			continue
		}
		status, err := n.verdict()
		if status == Pending && s.cause != nil && (!n.cleanup || s.refused != nil) {
			status, err = Cancelled, s.cause
		}
		switch {
		case status != Pending:
			n.result = Result{Key: n.key, Status: status, Err: err}
			s.settle(ctx, n)
		case n.cleanup && s.diagnosing():
		case s.opts.Parallel <= 0 || s.running < s.opts.Parallel:
			s.start(ctx, n)
		}
	}
}

func (s *scheduler) start(ctx context.Context, n *node) {
	n.started = true
	s.running++
	n.result = Result{Key: n.key, Status: Running, Started: time.Now()}
	s.observe(Event{Time: n.result.Started, Status: Running, Result: n.result})
	s.workers.Go(func() {
		s.execute(ctx, n)
		s.ended <- n
	})
}

// settle makes n's status final.
func (s *scheduler) settle(ctx context.Context, n *node) {
	if n.result.Finished.IsZero() {
		n.result.Finished = time.Now()
	}
	n.final.Store(true)
	if n.result.Status == Failed {
		s.failed++
	}
	s.observe(Event{Time: n.result.Finished, Status: n.result.Status, Result: n.result})
	s.settled(ctx, n)
}

func (s *scheduler) observe(e Event) {
	if s.opts.Observe != nil {
		s.opts.Observe(e)
	}
}

// verdict returns the status of a ready step that cannot run because of the steps it
// needs, or Pending if it can run.
func (n *node) verdict() (Status, error) {
	var by []*node
	var stopped error
	skipped := false
	for _, e := range n.needs {
		if e.settled {
			continue
		}
		switch r := &e.to.result; r.Status {
		case Failed:
			by = append(by, e.to)
		case Blocked:
			if b, ok := errors.AsType[*BlockedError](r.Err); ok {
				by = append(by, b.by...)
			}
		case Cancelled:
			stopped = cmp.Or(stopped, r.Err)
		case Skipped, Warned:
			skipped = skipped || !e.spare
		}
	}
	switch {
	case len(by) > 0:
		slices.SortFunc(by, func(a, b *node) int { return a.index - b.index })
		blocked := &BlockedError{by: slices.Compact(by)}
		for _, b := range blocked.by {
			blocked.By = append(blocked.By, b.key)
		}
		return Blocked, blocked
	case stopped != nil:
		return Cancelled, stopped
	case skipped:
		return Skipped, nil
	}
	return Pending, nil
}

// diagnosing reports whether a diagnosis is still due.
func (s *scheduler) diagnosing() bool { return s.opts.Diagnose != nil && s.failed > 0 && !s.asked }

// diagnose runs the diagnosis if it is still due, and reports whether it was. The steps that
// wait for it can start then.
func (s *scheduler) diagnose(ctx context.Context) bool {
	if !s.diagnosing() {
		return false
	}
	s.asked = true
	var failed []Result
	for _, n := range s.p.nodes {
		if n.result.Status == Failed {
			failed = append(failed, n.result)
		}
	}
	own, cancel := s.uncancelled(ctx)
	defer cancel()
	_ = safely(func() error { return s.opts.Diagnose(own, failed) }) // the run's error comes from its steps
	return true
}
