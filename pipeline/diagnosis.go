package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Diagnosis returns how Options.Diagnose ended: Succeeded, or Failed with its error,
// and when. The result's key is zero. ok is false until Diagnose has returned.
func (p *Pipeline) Diagnosis() (r Result, ok bool) {
	if r := p.diagnosis.Load(); r != nil {
		return *r, true
	}
	return Result{}, false
}

// diagnosing reports whether a diagnosis is still due.
func (s *scheduler) diagnosing() bool {
	return s.opts.Diagnose != nil && s.failed > 0 && s.p.diagnosis.Load() == nil
}

// diagnose runs the diagnosis if it is still due, and reports whether it was. The steps that
// wait for it can start then.
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
	return true
}
