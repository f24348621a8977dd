package pipeline

import (
	"errors"
	"sync"
)

// crew is the workers that execute steps. A step has a worker for itself for as
// long as it runs, and however many run. A worker goes from step to step: a
// goroutine for each would have to grow its stack each time.
type crew struct {
	execute func(*node)
	ended   chan struct{} // holds a value when there may be something to collect

	workers sync.WaitGroup
	mu      sync.Mutex
	work    sync.Cond // there is something to do, or nothing will be any more
	todo    []*node   // given and not begun, from next on
	next    int
	done    []*node // ended and not collected; their results are complete
	spare   []*node // what was collected last
	idle    int     // workers that wait and have not been called
	coming  bool    // a worker was called and has not looked yet
	closed  bool
}

func newCrew(execute func(*node)) *crew {
	c := &crew{execute: execute, ended: make(chan struct{}, 1)}
	c.work.L = &c.mu
	return c
}

// give has n executed, now.
func (c *crew) give(n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.todo = append(c.todo, n)
	c.call()
}

// collect is what has ended since the last call, in that order. It is valid until
// the next call.
func (c *crew) collect() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done, c.spare = c.spare[:0], c.done
	return c.spare
}

// dismiss returns when every worker has gone. Nothing is given any more.
func (c *crew) dismiss() {
	c.mu.Lock()
	c.closed = true
	c.work.Broadcast()
	c.mu.Unlock()
	c.workers.Wait()
}

// call has a worker come when there is something to do and none is on its way. One
// is enough, for it calls the next one before it begins: steps that end at once
// are done by few workers, and one that does not keeps no other waiting.
func (c *crew) call() {
	switch {
	case c.coming || c.next == len(c.todo):
		return
	case c.idle > 0:
		c.idle--
		c.work.Signal()
	default:
		c.workers.Go(c.worker)
	}
	c.coming = true
}

// worker executes one step after the other.
func (c *crew) worker() {
	var n *node
	defer func() {
		if n != nil { // the step has ended the goroutine
			n.result.Status, n.result.Err = n.failed(), errors.Join(n.result.Err, errGoexit)
			c.mu.Lock()
			c.end(n)
			c.mu.Unlock()
		}
	}()
	c.mu.Lock()
	c.coming = false
	for {
		for c.next == len(c.todo) {
			if c.closed {
				c.mu.Unlock()
				return
			}
			c.idle++
			c.work.Wait()
			c.coming = false
		}
		n = c.todo[c.next]
		if c.next++; c.next == len(c.todo) {
			c.todo, c.next = c.todo[:0], 0
		}
		c.call()
		c.mu.Unlock()
		c.execute(n)
		c.mu.Lock()
		c.end(n)
		n = nil
	}
}

// end makes n one to collect.
func (c *crew) end(n *node) {
	c.done = append(c.done, n)
	if len(c.done) == 1 {
		select {
		case c.ended <- struct{}{}:
		default: // nobody has looked since the last one
		}
	}
}
