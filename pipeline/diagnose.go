package pipeline

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"
)

// Diagnosis is how Options.Diagnose ended: Succeeded, or Failed with its error,
// and when. Its key is zero. It is false when Diagnose has not been called or has
// not returned.
func (p *Pipeline) Diagnosis() (Result, bool) {
	if r := p.diagnosis.Load(); r != nil {
		return *r, true
	}
	return Result{}, false
}

// diagnosing tells whether the diagnosis is still to come.
func (s *scheduler) diagnosing() bool {
	return s.opts.Diagnose != nil && s.failed > 0 && s.p.diagnosis.Load() == nil
}

// diagnose makes the diagnosis if it is still to come, and lets the steps that
// wait for it go on.
func (s *scheduler) diagnose(ctx context.Context) bool {
	if !s.diagnosing() {
		return false
	}
	var failed []Result
	for _, n := range s.p.nodes {
		if n.result.Status == Failed {
			failed = append(failed, n.result)
		}
	}
	own, cancel := s.uncancelled(ctx)
	defer cancel()
	r := Result{Status: Succeeded, Started: time.Now()}
	// In a goroutine of its own, so that it cannot end the caller's.
	err := errors.New("the diagnosis ended its goroutine")
	var wg sync.WaitGroup
	wg.Go(func() { err = safely(func() error { return s.opts.Diagnose(own, failed) }) })
	wg.Wait()
	if r.Finished = time.Now(); err != nil {
		r.Status, r.Err = Failed, err
	}
	s.p.diagnosis.Store(&r)
	for _, n := range s.held {
		heap.Push(&s.ready, n)
	}
	return true
}
