package pipeline

import (
	"errors"
	"sync"
)

// pool executes steps on as many workers as there are steps running. Workers are
// reused, because a fresh goroutine for each step would have to grow its stack.
type pool struct {
	execute func(*node)
	ended   chan struct{} // holds a value when there may be something to collect

	workers sync.WaitGroup
	mu      sync.Mutex
	work    sync.Cond // signals that there is work, or that the pool is closed
	todo    []*node   // submitted; those from next on have not been started
	next    int
	done    []*node // ended but not collected; their results are complete
	spare   []*node // returned by the last collect
	idle    int     // workers waiting that have not been woken
	waking  bool    // a worker was woken and has not taken a step yet
	closed  bool
}

func newPool(execute func(*node)) *pool {
	p := &pool{execute: execute, ended: make(chan struct{}, 1)}
	p.work.L = &p.mu
	return p
}

// submit starts executing n.
func (p *pool) submit(n *node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.todo = append(p.todo, n)
	p.wake()
}

// collect returns the steps that ended since the last call, in that order. The slice
// is valid until the next call.
func (p *pool) collect() []*node {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.spare = p.spare[:0], p.done
	return p.spare
}

// close waits for every worker to exit. Nothing may be submitted afterwards.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.work.Broadcast()
	p.mu.Unlock()
	p.workers.Wait()
}

// wake wakes or starts one worker if there is work and none is on its way. One is
// enough, as it wakes the next before it starts its step: short steps share few
// workers, and a long one delays no other.
func (p *pool) wake() {
	switch {
	case p.waking || p.next == len(p.todo):
		return
	case p.idle > 0:
		p.idle--
		p.work.Signal()
	default:
		p.workers.Go(p.worker)
	}
	p.waking = true
}

// worker executes one step after another.
func (p *pool) worker() {
	var n *node
	defer func() {
		if n != nil { // the step has ended the goroutine
			n.result.Status, n.result.Err = n.failed(), errors.Join(n.result.Err, errGoexit)
			p.mu.Lock()
			p.end(n)
			p.mu.Unlock()
		}
	}()
	p.mu.Lock()
	p.waking = false
	for {
		for p.next == len(p.todo) {
			if p.closed {
				p.mu.Unlock()
				return
			}
			p.idle++
			p.work.Wait()
			p.waking = false
		}
		n = p.todo[p.next]
		if p.next++; p.next == len(p.todo) {
			p.todo, p.next = p.todo[:0], 0
		}
		p.wake()
		p.mu.Unlock()
		p.execute(n)
		p.mu.Lock()
		p.end(n)
		n = nil
	}
}

// end marks n as ready to collect.
func (p *pool) end(n *node) {
	p.done = append(p.done, n)
	if len(p.done) == 1 {
		select {
		case p.ended <- struct{}{}:
		default: // the signal before this one has not been received yet
		}
	}
}
