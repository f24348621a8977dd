package report

import (
	"fmt"
	"strings"
	"time"
)

// timelineView is the graph over time: a row for each step, in lanes.
type timelineView struct {
	Start  string // time of day at which the axis begins, UTC
	Ticks  []tick
	Lanes  []laneView
	Rest   []*stepView // never started
	Path   []*stepView // critical path
	Spent  string      // time spent on it
	Ran    string      // "12 steps"
	Across string      // "3 parallel lanes"
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
	placed := map[int]bool{}
	put := func(s *stepView) {
		x, x2 := percent(s.Started.Sub(start)), percent(s.Finished.Sub(start))
		width := max(x2-x, minWidth)
		x = min(x, 100-width)
		s.Bar = bar{X: fmt.Sprintf("%.2f", x), Width: fmt.Sprintf("%.2f", width), End: fmt.Sprintf("%.2f", x+width)}
	}
	for n, lane := range Lanes(r.Steps) {
		l := laneView{Title: fmt.Sprintf("Lane %d", n+1), Note: count(len(lane), "step") + " beside it"}
		if n == 0 {
			spent := r.spent(lane)
			l.Title, v.Spent = "Critical path", Took(spent)
			l.Note = fmt.Sprintf("%s, %s", count(len(lane), "step"), v.Spent)
			if length > 0 {
				l.Note += fmt.Sprintf(", %.0f %% of the run", 100*float64(spent)/float64(length))
			}
		}
		for k, i := range lane {
			s := steps[i]
			placed[i] = true
			put(s)
			if n == 0 {
				s.Critical = true
				s.Bar.JoinBefore, s.Bar.JoinEnd = k > 0, k < len(lane)-1
				v.Path = append(v.Path, s)
			}
			l.Steps = append(l.Steps, s)
		}
		v.Lanes = append(v.Lanes, l)
	}
	v.Ran, v.Across = count(len(placed), "step"), count(len(v.Lanes), "parallel lane")
	hooks := laneView{Title: "Hooks"}
	for i, s := range steps {
		if s.Stage == HooksStage && s.ran() {
			placed[i] = true
			put(s)
			hooks.Steps = append(hooks.Steps, s)
		}
	}
	if n := len(hooks.Steps); n > 0 {
		hooks.Note = count(n, "execution") + "; one around a step is a part of its time"
		v.Lanes = append(v.Lanes, hooks)
	}
	for i, s := range steps {
		if !placed[i] {
			v.Rest = append(v.Rest, s)
		}
	}
	return v
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
