package pipeline

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"slices"
	"time"
)

// scheduler decides when each step starts. Its fields belong to the goroutine that
// called Run.
type scheduler struct {
	p       *Pipeline
	opts    Options
	pool    *pool
	running int // steps submitted to the pool and not collected
	stop    <-chan struct{}
	halted  <-chan error
	cause   error             // why no more steps start; nil while they do
	stopped bool              // cause is a stop or a cancellation
	refused error             // returned by a hook before the run
	spoiled []error           // returned by hooks after stages
	stages  map[string]*stage // those with hooks around them

	ready   queue   // everything they need has ended
	waiting queue   // only Options.Parallel prevents them from starting
	held    []*node // clean-up steps that wait for the diagnosis
	failed  int     // how many steps have failed
}

func newScheduler(ctx context.Context, p *Pipeline, opts Options) *scheduler {
	s := &scheduler{p: p, opts: opts, stop: opts.Stop, halted: opts.Halt, stages: p.stages(opts.Hooks)}
	s.pool = newPool(func(n *node) { s.execute(ctx, n) })
	return s
}

// link fills in the dependants of each node.
func (p *Pipeline) link() {
	counts := make([]int, len(p.nodes))
	total := 0
	for _, n := range p.nodes {
		n.waits = len(n.needs)
		total += n.waits
		for _, e := range n.needs {
			counts[e.to.index]++
		}
	}
	all := make([]edge, total)
	for i, n := range p.nodes {
		n.dependants, all = all[:0:counts[i]], all[counts[i]:]
	}
	for _, n := range p.nodes {
		for _, e := range n.needs {
			e.to.dependants = append(e.to.dependants, edge{to: n, settled: e.settled})
		}
	}
}

// loop runs until every step has a final status.
func (s *scheduler) loop(ctx context.Context) {
	if s.refused != nil {
		s.halt(s.refused)
	}
	s.seed(ctx)
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
		case <-s.pool.ended:
			for _, n := range s.pool.collect() {
				s.running--
				s.settle(ctx, n)
			}
		case <-s.stop: // checkStop handles this and the end of ctx
		case cause := <-s.halted:
			s.halted = nil
			s.end(cause)
		case <-ctxDone:
			ctxDone = nil
		}
	}
	s.pool.close()
}

// seed settles the steps that take no part and queues those that need nothing.
func (s *scheduler) seed(ctx context.Context) {
	for _, n := range s.p.nodes {
		if n.part != out && len(n.needs) == 0 {
			heap.Push(&s.ready, n)
		}
	}
	for _, n := range s.p.nodes {
		if n.part == out {
			n.result = Result{Key: n.key, Status: Unselected}
			s.settle(ctx, n)
		}
	}
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

// halt prevents further steps from starting and requeues those that wait to start,
// so that they are cancelled.
func (s *scheduler) halt(cause error) {
	s.cause = cmp.Or(s.cause, cause)
	for _, n := range s.waiting {
		heap.Push(&s.ready, n)
	}
	s.waiting = nil
}

// advance settles and starts every step that can be, in the order of adding.
func (s *scheduler) advance(ctx context.Context) {
	for {
		room := s.opts.Parallel <= 0 || s.running < s.opts.Parallel
		var n *node
		switch {
		case room && len(s.waiting) > 0 && (len(s.ready) == 0 || s.waiting[0].index < s.ready[0].index):
			n = heap.Pop(&s.waiting).(*node)
		case len(s.ready) > 0:
			n = heap.Pop(&s.ready).(*node)
		default:
			return
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
			s.held = append(s.held, n)
		case room:
			s.start(n)
		default:
			heap.Push(&s.waiting, n)
		}
	}
}

// start submits n to the pool.
func (s *scheduler) start(n *node) {
	s.running++
	n.result = Result{Key: n.key, Status: Running, Started: time.Now()}
	s.observe(Event{Time: n.result.Started, Status: Running, Result: n.result})
	s.pool.submit(n)
}

// settle makes n's status final and queues the steps that waited for nothing else.
func (s *scheduler) settle(ctx context.Context, n *node) {
	if n.result.Finished.IsZero() {
		n.result.Finished = time.Now()
	}
	n.final.Store(true)
	if n.result.Status == Failed {
		s.failed++
	}
	s.observe(Event{Time: n.result.Finished, Status: n.result.Status, Result: n.result})
	for _, e := range n.dependants {
		e.to.waits--
		if e.to.waits == 0 && e.to.part != out {
			heap.Push(&s.ready, e.to)
		}
	}
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

// queue is a heap of nodes in the order of adding.
type queue []*node

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].index < q[j].index }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(n any)        { *q = append(*q, n.(*node)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	n := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return n
}
