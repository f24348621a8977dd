package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// board is the current state of a run.
type board struct {
	graph   []pipeline.Node   // nil until it is known
	steps   map[string]*state // by "stage/step"
	order   []string          // as in the graph, followed by steps outside of it (hooks)
	started time.Time
}

// state is the state of a step. The zero value has not started.
type state struct {
	status  pipeline.Status
	started time.Time
	message string    // last reported by the step
	beat    time.Time // when its last heartbeat was shown
}

func (s *state) running() bool { return s.status == pipeline.Running }

// ended reports whether the status is final, which includes statuses unknown to this
// package.
func (s *state) ended() bool {
	return s.status != "" && s.status != pipeline.Pending && s.status != pipeline.Running
}

// step returns the state of a step, adding it if the graph does not have it.
func (b *board) step(id string) *state {
	s := b.steps[id]
	if s == nil {
		s = &state{}
		b.steps[id] = s
		b.order = append(b.order, id)
	}
	return s
}

func (b *board) begin(graph []pipeline.Node) {
	b.graph = graph
	for _, n := range graph {
		b.step(n.String())
	}
}

func (b *board) observe(e pipeline.Event) {
	s := b.step(e.Result.String())
	s.status, s.started = e.Status, e.Result.Started
	if s.running() {
		s.beat, s.message = s.started, ""
	}
}

// running returns the running steps in the order of the graph.
func (b *board) running() []string {
	return slices.DeleteFunc(slices.Clone(b.order), func(id string) bool { return !b.steps[id].running() })
}

// block returns the lines at the bottom of the terminal, at most height of them, each
// at most width columns wide: the running steps, then a summary of the run.
func (b *board) block(width, height int, now time.Time) []string {
	summary := fit(b.summary(now), width)
	running := b.running()
	room := max(0, height-1)
	var lines []string
	if room > len(running) {
		lines = append(lines, "") // where the cursor rests
	}
	for i, id := range running {
		if left := len(running) - i; left > 1 && len(lines) == room-1 {
			lines = append(lines, fit(fmt.Sprintf("        and %d more", left), width))
			break
		} else if len(lines) >= room {
			break
		}
		s := b.steps[id]
		line := fmt.Sprintf("%6s  %s", clock(now.Sub(s.started)), id)
		if s.message != "" {
			line += ": " + s.message
		}
		lines = append(lines, fit(line, width))
	}
	return append(lines, summary)
}

// summary returns the line about the whole run.
func (b *board) summary(now time.Time) string {
	elapsed := clock(now.Sub(b.started))
	if b.graph == nil {
		return "configure, " + elapsed
	}
	var done, all, failed int
	for _, n := range b.graph {
		s := b.steps[n.String()]
		if s.status == pipeline.Skipped || s.status == pipeline.Unselected {
			continue
		}
		all++
		if s.ended() {
			done++
		}
		if s.status == pipeline.Failed {
			failed++
		}
	}
	parts := []string{fmt.Sprintf("%d/%d done", done, all)}
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", failed))
	}
	parts = append(parts, elapsed)
	if done == all {
		return strings.Join(append(parts, "finishing"), ", ")
	}
	line := strings.Join(parts, ", ")
	var stages []string
	for _, id := range b.running() {
		if stage, _, _ := strings.Cut(id, "/"); !slices.Contains(stages, stage) {
			stages = append(stages, stage)
		}
	}
	if len(stages) > 0 {
		line += ": " + strings.Join(stages, ", ")
	}
	return line
}

// clock formats a duration in whole seconds, so that the display changes once a second.
func clock(d time.Duration) string {
	if d = max(0, d.Truncate(time.Second)); d < 10*time.Second {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return report.Took(d)
}

// Control sequences that every terminal since the VT100 understands.
const (
	clearBelow = "\r\x1b[J" // from the beginning of the cursor's line to the end of the screen
	reset      = "\x1b[0m"
	red        = "\x1b[31m"
	yellow     = "\x1b[33m"
)

// frame replaces the block at the cursor with permanent lines and a new block.
//
// The cursor rests on the first line of the block, not below the last one: when a
// terminal changes its width it moves the cursor with the text, so the next frame
// finds the beginning of the block no matter how its lines were wrapped. Between
// frames the terminal is in its normal state, so nothing has to be restored if the
// process dies.
func frame(above string, block []string) string {
	var b strings.Builder
	b.WriteString(clearBelow)
	b.WriteString(above)
	b.WriteString(strings.Join(block, "\n"))
	b.WriteByte('\r')
	for range len(block) - 1 {
		b.WriteString("\x1b[A")
	}
	return b.String()
}

// coloured returns the line of a step that ended, coloured by its status.
func coloured(line string, status pipeline.Status) string {
	switch status {
	case pipeline.Succeeded, pipeline.Reused, pipeline.Skipped, pipeline.Cancelled:
		return line
	case pipeline.Failed:
		return red + line + reset
	}
	return yellow + line + reset
}

// fit cuts s to width columns.
func fit(s string, width int) string { return ansi.Truncate(s, width, "…") }
