package pipeline

import "context"

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
	_ = safely(func() error { return s.opts.Diagnose(own, failed) }) // the run's error is that of its steps
	return true
}
