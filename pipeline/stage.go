package pipeline

import (
	"context"
	"errors"
	"strings"
	"sync"
)

// stage is one with hooks around it.
type stage struct {
	name  string
	steps []*node // that take part
	once  sync.Once
	begun bool  // the hooks before it were called
	err   error // of those

	// Used by the scheduler only.
	left int // steps without a final status
}

// OnStage reports whether the hook is bound to a stage.
func (h Hook) OnStage() bool {
	return h.Step != "" && h.Step != EveryStep && !strings.Contains(h.Step, "/")
}

// stages are those with hooks around them, by name.
func (p *Pipeline) stages(hooks []Hook) map[string]*stage {
	all := map[string]*stage{}
	for _, h := range hooks {
		if h.OnStage() {
			all[h.Step] = &stage{name: h.Step}
		}
	}
	for _, n := range p.nodes {
		if st := all[n.key.Stage]; st != nil && !n.out {
			st.steps = append(st.steps, n)
			st.left++
		}
	}
	return all
}

// before runs the hooks before the stage when the first of its steps is about to start;
// the others wait for that. Their error fails each step.
func (st *stage) before(ctx context.Context, hooks []Hook) error {
	if st == nil {
		return nil
	}
	st.once.Do(func() {
		st.begun = true
		st.err = safely(func() error { return before(ctx, hooks, Key{Stage: st.name}) })
	})
	return st.err
}

// settled notes that a step of the stage has ended, and after the last one runs the
// hooks after the stage. The scheduler waits for them, so that nothing starts
// meanwhile; when one fails, nothing starts any more but clean-up steps.
func (s *scheduler) settled(ctx context.Context, n *node) {
	st := s.stages[n.key.Stage]
	if st == nil || n.out {
		return
	}
	if st.left--; st.left > 0 || !st.begun {
		return
	}
	last, release := s.uncancelled(ctx)
	defer release()
	if err := safely(func() error { return after(last, s.opts.Hooks, st.result()) }); err != nil {
		s.spoiled = append(s.spoiled, err)
		s.halt(err)
	}
}

// result is Failed if a step failed, was blocked or was cancelled, Reused if all were
// reused, else Succeeded.
func (st *stage) result() Result {
	whole := Result{Key: Key{Stage: st.name}, Status: Reused}
	var errs []error
	for _, n := range st.steps {
		r := &n.result
		if !r.Started.IsZero() && (whole.Started.IsZero() || r.Started.Before(whole.Started)) {
			whole.Started = r.Started
		}
		if r.Finished.After(whole.Finished) {
			whole.Finished = r.Finished
		}
		switch r.Status {
		case Failed, Cancelled:
			errs = append(errs, &StepError{r.Stage, r.Name, r.Err})
			whole.Status = Failed
		case Blocked: // by a step that says so itself
			whole.Status = Failed
		case Reused:
		default:
			if whole.Status != Failed {
				whole.Status = Succeeded
			}
		}
	}
	whole.Err = errors.Join(errs...)
	return whole
}
