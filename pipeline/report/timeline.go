package report

import (
	"slices"
	"time"
)

// ran tells whether there is a time in which the step ran.
func (s *Step) ran() bool { return !s.Started.IsZero() && !s.Finished.IsZero() }

// placed tells whether the step has a place in a lane.
func (s *Step) placed() bool { return s.ran() && s.Stage != HooksStage }

// CriticalPath is the chain of steps that made the run as long as it was: it
// ends with the step that ended last, and before each of its steps comes the one
// that this step waited for last. The numbers are indexes into steps, in the
// order in which they ran. Steps that never ran and hooks are on no path; edges to
// steps that are not there are ignored.
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
	on := make([]bool, len(steps)) // edges of a record that somebody wrote may form a cycle
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

// Lanes spreads the steps that ran, but no hooks, over as few tracks as keep steps apart that
// ran at the same time. The first one is the critical path. The numbers are
// indexes into steps, in each lane in the order in which they ran.
func Lanes(steps []Step) [][]int {
	critical := CriticalPath(steps)
	if len(critical) == 0 {
		return nil
	}
	var rest []int
	for i := range steps {
		if steps[i].placed() && !slices.Contains(critical, i) {
			rest = append(rest, i)
		}
	}
	slices.SortStableFunc(rest, func(a, b int) int { return steps[a].Started.Compare(steps[b].Started) })
	lanes := [][]int{critical}
	for _, i := range rest {
		free := slices.IndexFunc(lanes[1:], func(lane []int) bool {
			return !steps[lane[len(lane)-1]].Finished.After(steps[i].Started)
		})
		if free < 0 {
			lanes = append(lanes, []int{i})
			continue
		}
		lanes[free+1] = append(lanes[free+1], i)
	}
	return lanes
}

// window is the time that the record covers: that of the run, and of its steps
// where those lie outside.
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

// ticks are round moments on an axis of that length, the first at 0; about six.
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
	for t := time.Duration(0); t <= length; t += every {
		out = append(out, t)
	}
	return out
}
