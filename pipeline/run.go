package pipeline

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// DefaultCleanupTimeout is how long a clean-up step may take when
// Options.CleanupTimeout is zero.
const DefaultCleanupTimeout = 2 * time.Minute

// Options configures Run. The zero value is ready to use.
type Options struct {
	// Parallel is how many steps run at the same time; 0: as many as can.
	Parallel int
	// Stop, once closed, ends the run at the end of the steps that are running:
	// they finish, no other starts. Nil: never.
	Stop <-chan struct{}
	// CleanupTimeout limits each clean-up step (see Settled) and the hooks after
	// steps; 0: DefaultCleanupTimeout.
	CleanupTimeout time.Duration
	// Hooks run around steps, in their order.
	Hooks []Hook
	// Observe is told when a step starts and when its status is final. Calls do
	// not overlap; the run waits for them. May be nil.
	Observe func(Event)
}

// Event is a change of a step's status: to Running, or to a final status.
type Event struct {
	Time   time.Time
	Status Status
	Result Result // complete when the status is final; key and start before
}

// Run runs the steps, each once all that it needs has succeeded, and returns
// when every step has ended. Steps that do not depend on each other run at the
// same time. A step that fails blocks those that need it and no other.
//
// Cancelling ctx cancels the running steps and starts no others; closing
// Options.Stop lets the running ones finish. Clean-up steps run in both cases.
//
// The results are in the order in which the steps were added. The error joins,
// in the same order, a *StepError for each step that failed, then a fault with
// a *CancelError when the run was stopped or cancelled before every step had
// run. A hook on a step that does not exist is an error, and nothing runs. Run
// panics when it is called again.
func (p *Pipeline) Run(ctx context.Context, opts Options) ([]Result, error) {
	if p.sealed {
		panic("pipeline: run twice")
	}
	p.sealed = true
	if err := p.checkHooks(opts.Hooks); err != nil {
		return nil, err
	}
	if opts.CleanupTimeout <= 0 {
		opts.CleanupTimeout = DefaultCleanupTimeout
	}
	s := &scheduler{p: p, opts: opts, ended: make(chan ended), stop: opts.Stop}
	started := time.Now()
	if err := safely(func() error { return beforeRun(ctx, opts.Hooks) }); err != nil {
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
	errs = append(errs, safely(func() error { return afterRun(last, opts.Hooks, whole) }))
	return results, errors.Join(errs...)
}

// scheduler decides what starts when. Its fields belong to the goroutine that
// called Run.
type scheduler struct {
	p       *Pipeline
	opts    Options
	running int
	ended   chan ended
	wg      sync.WaitGroup
	stop    <-chan struct{}
	cause   error // why no step starts any more; nil while they do
	refused error // of a hook before the run
}

// ended is a step's goroutine reporting back.
type ended struct {
	n      *node
	result Result
}

// loop runs until every step has a final status.
func (s *scheduler) loop(ctx context.Context) {
	s.cause = s.refused
	ctxDone := ctx.Done()
	for {
		s.look(ctx)
		s.advance(ctx)
		if s.running == 0 {
			break // what needs nothing unsettled was settled or started
		}
		select {
		case e := <-s.ended:
			s.running--
			s.settle(e.n, e.result)
		case <-s.stop:
			s.stop = nil // look has the last word
			s.cause = cmp.Or(s.cause, ErrStopped)
		case <-ctxDone:
			ctxDone = nil
		}
	}
	s.wg.Wait()
}

// look notices a stop or a cancellation, so that nothing starts after it.
func (s *scheduler) look(ctx context.Context) {
	select {
	case <-s.stop:
		s.stop = nil
		s.cause = cmp.Or(s.cause, ErrStopped)
	default:
	}
	if ctx.Err() != nil {
		s.cause = cmp.Or(s.cause, context.Cause(ctx))
	}
}

// advance settles and starts whatever can be, in the order of adding. A step
// comes after all that it needs, so one pass is enough.
func (s *scheduler) advance(ctx context.Context) {
	for _, n := range s.p.nodes {
		if n.started || n.result.Load() != nil || !n.ready() {
			continue
		}
		status, err := n.verdict()
		if status == Pending && s.cause != nil && (!n.cleanup || s.refused != nil) {
			status, err = Cancelled, s.cause
		}
		switch {
		case status != Pending:
			s.settle(n, Result{Key: n.key, Status: status, Err: err})
		case s.opts.Parallel <= 0 || s.running < s.opts.Parallel:
			s.start(ctx, n)
		}
	}
}

// start runs n in a goroutine of its own.
func (s *scheduler) start(ctx context.Context, n *node) {
	n.started = true
	s.running++
	r := Result{Key: n.key, Status: Running, Started: time.Now()}
	s.observe(Event{Time: r.Started, Status: Running, Result: r})
	s.wg.Go(func() {
		// Deferred, so that it also happens when the step ends its goroutine.
		defer func() { s.ended <- ended{n, r} }()
		r.Status, r.Err = Failed, errors.New("the step ended its goroutine")
		s.execute(ctx, n, &r)
	})
}

// execute runs n and its hooks and completes r.
func (s *scheduler) execute(ctx context.Context, n *node, r *Result) {
	own, cancel := context.WithCancel(ctx)
	if n.cleanup {
		cancel()
		own, cancel = s.uncancelled(ctx)
	}
	defer cancel()
	own = context.WithValue(own, detailKey{}, &detail{})

	err := safely(func() error { return before(own, s.opts.Hooks, n.key) })
	if err == nil {
		err = safely(func() error { return n.run(own) })
	}
	r.Detail = own.Value(detailKey{}).(*detail).get()
	r.Err = nil
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
		r.Status, r.Err = Failed, err
	}
	r.Finished = time.Now()

	last, release := s.uncancelled(ctx)
	defer release()
	if err := safely(func() error { return after(last, s.opts.Hooks, *r) }); err != nil {
		if r.Status != Cancelled {
			r.Status = Failed
		}
		r.Err = errors.Join(r.Err, err)
	}
}

// uncancelled is ctx without its cancellation, with the clean-up timeout.
func (s *scheduler) uncancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.opts.CleanupTimeout)
}

// settle makes n's status final.
func (s *scheduler) settle(n *node, r Result) {
	if r.Finished.IsZero() {
		r.Finished = time.Now()
	}
	n.result.Store(&r)
	s.observe(Event{Time: r.Finished, Status: r.Status, Result: r})
}

func (s *scheduler) observe(e Event) {
	if s.opts.Observe != nil {
		s.opts.Observe(e)
	}
}

// outcome collects the results and the errors.
func (s *scheduler) outcome() ([]Result, []error) {
	results := make([]Result, len(s.p.nodes))
	var errs []error
	var left CancelError
	for i, n := range s.p.nodes {
		r := *n.result.Load()
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
	case s.refused != nil:
		errs = append(errs, s.refused)
	case len(left.Unstarted)+len(left.Interrupted) > 0:
		left.Cause = s.cause
		errs = append(errs, cancelled(&left))
	}
	return results, errs
}

// ready tells whether all that n needs has ended.
func (n *node) ready() bool {
	return !slices.ContainsFunc(n.needs, func(e edge) bool { return e.to.result.Load() == nil })
}

// verdict is the status of a ready step that cannot run because of what it
// needs; Pending when it can.
func (n *node) verdict() (Status, error) {
	var by []*node
	var stopped error
	skipped := false
	for _, e := range n.needs {
		if e.settled {
			continue
		}
		switch r := e.to.result.Load(); r.Status {
		case Failed:
			by = append(by, e.to)
		case Blocked:
			by = append(by, e.to.blockedBy...)
		case Cancelled:
			stopped = cmp.Or(stopped, r.Err)
		case Skipped:
			skipped = true
		}
	}
	switch {
	case len(by) > 0:
		slices.SortFunc(by, func(a, b *node) int { return a.index - b.index })
		n.blockedBy = slices.Compact(by)
		blocked := &BlockedError{}
		for _, b := range n.blockedBy {
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

// safely turns a panic into an error.
func safely(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

type detailKey struct{}

type detail struct {
	mu sync.Mutex
	d  Detail
}

func (d *detail) get() Detail {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.d
}

// Describe records what a step says about itself; the last call counts. ctx is
// the step's context or one made from it; with another one it panics.
func Describe(ctx context.Context, d Detail) {
	at, ok := ctx.Value(detailKey{}).(*detail)
	if !ok {
		panic("pipeline: Describe without the context of a step")
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	at.d = d
}
