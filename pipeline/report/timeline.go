package report

import (
	"slices"
	"time"
)

// ran reports whether the step has started and finished.
func (s *Step) ran() bool { return !s.Started.IsZero() && !s.Finished.IsZero() }

// placed reports whether the step can be on the critical path.
func (s *Step) placed() bool { return s.ran() && s.Stage != HooksStage }

// CriticalPath returns the chain of steps that determined the duration of the run: it
// ends with the step that finished last, and before each step comes the step that it
// waited for last. It returns indexes into steps, in the order in which they ran.
// Hooks and steps that never ran are not on the path; edges to unknown steps are
// ignored.
func CriticalPath(steps []Step) []int {
	index := map[string]int{}
	last := -1
	for i := range steps {
		index[steps[i].ID()] = i
		if steps[i].placed() && (last < 0 || !steps[i].Finished.Before(steps[last].Finished)) {
			last = i
		}
	}
	var path []int
	on := make([]bool, len(steps)) // the edges of a corrupt record may form a cycle
	for last >= 0 && !on[last] {
		on[last] = true
		path = append(path, last)
		next := -1
		for _, need := range slices.Concat(steps[last].Needs, steps[last].After) {
			i, ok := index[need]
			if ok && steps[i].placed() && (next < 0 || steps[i].Finished.After(steps[next].Finished)) {
				next = i
			}
		}
		last = next
	}
	slices.Reverse(path)
	return path
}

// window returns the time that the record covers: from the start to the end of the run, extended
// by steps outside of it.
func (r *Run) window() (start, end time.Time) {
	start, end = r.Started, r.Finished
	for i := range r.Steps {
		if s := &r.Steps[i]; s.ran() {
			if start.IsZero() || s.Started.Before(start) {
				start = s.Started
			}
			if s.Finished.After(end) {
				end = s.Finished
			}
		}
	}
	if end.Before(start) {
		end = start
	}
	return start, end
}

// ticks returns about six round times on an axis of that length, the first at 0.
func ticks(length time.Duration) []time.Duration {
	const most = 7
	if length <= 0 {
		return nil
	}
	every := time.Second
	for _, e := range []time.Duration{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600} {
		if every = e * time.Second; length/every < most {
			break
		}
	}
	for length/every >= most {
		every *= 2
	}
	var out []time.Duration
	for n := range length/every + 1 { // the sum of the times of a forged record could overflow
		out = append(out, n*every)
	}
	return out
}
