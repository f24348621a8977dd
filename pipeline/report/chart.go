package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// timelineView is the graph over time: a row for each step, those of the critical path first.
type timelineView struct {
	Start string // time of day at which the axis begins, UTC
	Ticks []tick
	Lanes []laneView
	Rest  []*stepView // never started
	Path  []*stepView // critical path
	Spent string      // time spent on it
	Ran   string      // "12 steps"
}

type laneView struct {
	Title string
	Note  string
	Steps []*stepView
}

type tick struct{ X, Label, Anchor string } // where on the axis, in per cent

// bar is a step in the chart, in per cent of its width. The bars of the critical path
// are joined.
type bar struct {
	X, Width, End       string
	JoinBefore, JoinEnd bool
}

// minWidth is the width of the shortest bar, in per cent.
const minWidth = 0.4

func (r *Run) timeline(steps []*stepView) timelineView {
	start, end := r.window()
	length := end.Sub(start)
	v := timelineView{Start: start.UTC().Format("15:04:05")}
	percent := func(d time.Duration) float64 {
		if length <= 0 {
			return 0
		}
		return min(max(100*float64(d)/float64(length), 0), 100)
	}
	for _, t := range ticks(length) {
		anchor := "middle"
		switch x := percent(t); {
		case x < 3:
			anchor = "start"
		case x > 97:
			anchor = "end"
		}
		v.Ticks = append(v.Ticks, tick{fmt.Sprintf("%.2f", percent(t)), at(t), anchor})
	}
	path := CriticalPath(r.Steps)
	spent := r.spent(path)
	critical := laneView{Title: "Critical path", Note: fmt.Sprintf("%s, %s", count(len(path), "step"), Took(spent))}
	if length > 0 {
		critical.Note += fmt.Sprintf(", %.0f %% of the run", 100*float64(spent)/float64(length))
	}
	v.Spent = Took(spent)
	var beside []*stepView
	for i, s := range steps {
		switch {
		case !s.ran():
			v.Rest = append(v.Rest, s)
			continue
		case !slices.Contains(path, i):
			beside = append(beside, s)
		}
		x, x2 := percent(s.Started.Sub(start)), percent(s.Finished.Sub(start))
		width := max(x2-x, minWidth)
		x = min(x, 100-width)
		s.Bar = bar{X: fmt.Sprintf("%.2f", x), Width: fmt.Sprintf("%.2f", width), End: fmt.Sprintf("%.2f", x+width)}
	}
	for k, i := range path {
		s := steps[i]
		s.Bar.JoinBefore, s.Bar.JoinEnd = k > 0, k < len(path)-1
		v.Path = append(v.Path, s)
	}
	slices.SortStableFunc(beside, func(a, b *stepView) int { return a.Started.Compare(b.Started) })
	v.Ran = count(len(path)+len(beside), "step")
	if len(path) > 0 {
		critical.Steps = v.Path
		v.Lanes = append(v.Lanes, critical)
	}
	if len(beside) > 0 {
		v.Lanes = append(v.Lanes, laneView{Title: "Beside it", Note: count(len(beside), "step") + "; a hook around a step is a part of its time", Steps: beside})
	}
	return v
}

// spent returns how long the steps with these indexes ran in total.
func (r *Run) spent(path []int) time.Duration {
	var d time.Duration
	for _, i := range path {
		d += r.Steps[i].Finished.Sub(r.Steps[i].Started)
	}
	return d
}

// count returns a number with its noun, in the plural unless n is 1.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Why returns the reason that an unstarted step's row shows in place of a bar.
func (s *stepView) Why() string {
	if len(s.BlockedBy) > 0 {
		return "blocked by " + strings.Join(s.BlockedBy, ", ")
	}
	if s.Error != "" {
		return firstLine(s.Error)
	}
	return ""
}
