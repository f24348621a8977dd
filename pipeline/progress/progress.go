// Package progress shows the progress of a run: on a terminal as a block of lines at
// the bottom that is redrawn, elsewhere as plain lines.
package progress

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
)

const (
	redraw    = 100 * time.Millisecond // between two frames, at least
	beatCheck = time.Second            // between two checks for steps that are due a heartbeat
	heartbeat = 30 * time.Second       // between two heartbeats of a step, in plain lines
)

// The size of a terminal that does not report its own.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// Options configures how a run is shown. The zero value shows plain lines.
type Options struct {
	// Live shows a block at the bottom of the terminal.
	Live bool
	// Color marks failures in colour; only in a live display.
	Color bool
	// Size returns the terminal's size in columns and rows; it is called before each
	// frame. If it is nil or returns 0: 80 columns, 24 rows.
	Size func() (width, height int)
}

// Screen is the stream on which a run is shown. All other output goes through it, too,
// so that nothing is written into the live block. It is safe for concurrent use.
//
// Before a run and after End, it passes on what is written.
type Screen struct {
	mu      sync.Mutex
	w       io.Writer
	plain   io.Writer // w, for what others wrote
	opts    Options
	board   *board // nil before the run and after its end
	above   bytes.Buffer
	partial []byte        // an incomplete line
	last    string        // as last drawn, and the terminal's size
	quit    chan struct{} // ends the drawing; nil when nothing draws
	drawn   sync.WaitGroup
}

// Open returns a screen that writes to w.
func Open(w io.Writer, opts Options) *Screen {
	return &Screen{w: w, plain: redact.NewPrinter(w), opts: opts}
}

// Plain switches to plain lines. It must be called before the run.
func (s *Screen) Plain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts = Options{}
}

// Prepare starts the display of a run whose graph is not known yet, that is of its
// first stage, configure. End ends it.
func (s *Screen) Prepare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.board != nil {
		return
	}
	s.board = &board{steps: map[string]*state{}, started: time.Now()}
	quit, live := make(chan struct{}), s.opts.Live
	s.quit = quit
	s.drawn.Go(func() { s.animate(quit, live) })
}

// Begin shows a run of this graph. It calls Prepare if that has not been done.
func (s *Screen) Begin(graph []pipeline.Node) {
	s.Prepare()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.board.begin(graph)
}

// Observe shows an event of the run. If the display is live, it does not wait for the
// terminal.
func (s *Screen) Observe(e pipeline.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := redact.OneLine(report.Line(e))
	if s.board != nil {
		s.board.observe(e)
	}
	switch {
	case !s.live():
		fmt.Fprintln(s.w, line)
	case e.Status == pipeline.Running:
	case e.Result.Started.IsZero() && (e.Result.Err == nil || e.Status == pipeline.Cancelled):
		// The step takes no part in this run, or no longer does.
	case s.opts.Color:
		fmt.Fprintln(&s.above, coloured(line, e.Status))
	default:
		fmt.Fprintln(&s.above, line)
	}
}

// Message shows a progress message of a step: "stage/step: text". In the block it is
// shown beside the step while that runs; afterwards it is only in the step's log.
func (s *Screen) Message(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line = redact.OneLine(line)
	id, text, _ := strings.Cut(line, ": ")
	if !s.live() {
		fmt.Fprintln(s.w, "     "+line)
		return
	}
	switch step := s.board.steps[id]; {
	case step == nil:
		fmt.Fprintln(&s.above, line)
	case step.running():
		step.message = text
	}
}

// Write writes what is printable of p, which may be the engine's log; during a live display
// complete lines appear above the block.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live() {
		return s.plain.Write(p)
	}
	s.partial = append(s.partial, p...)
	if at := bytes.LastIndexByte(s.partial, '\n'); at >= 0 {
		s.above.WriteString(redact.Printable(string(s.partial[:at+1])))
		s.partial = append([]byte(nil), s.partial[at+1:]...)
	}
	return len(p), nil
}

// End removes the block and leaves the lines above it. Calling it again has no effect.
// It must also be called before a panic ends the process.
func (s *Screen) End() {
	s.mu.Lock()
	if s.quit == nil {
		s.mu.Unlock()
		return
	}
	close(s.quit)
	s.quit = nil
	s.mu.Unlock()
	s.drawn.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live() {
		if len(s.partial) > 0 {
			fmt.Fprintln(&s.above, redact.Printable(string(s.partial)))
		}
		fmt.Fprint(s.w, frame(s.above.String(), nil))
		s.above.Reset()
		s.partial, s.last = nil, ""
	}
	s.board = nil
}

// live reports whether a block is being shown. The caller holds the lock.
func (s *Screen) live() bool { return s.opts.Live && s.board != nil }

// animate draws until quit is closed.
func (s *Screen) animate(quit <-chan struct{}, live bool) {
	every, act := beatCheck, s.beat
	if live {
		every, act = redraw, s.draw
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-quit:
			return
		case now := <-tick.C:
			act(now)
		}
	}
}

// draw updates the terminal if anything has changed.
func (s *Screen) draw(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.board == nil {
		return
	}
	width, height := 0, 0
	if s.opts.Size != nil {
		width, height = s.opts.Size()
	}
	if width <= 0 || height <= 0 {
		width, height = defaultWidth, defaultHeight
	}
	// The last column stays free, as some terminals wrap after a character in it. The
	// last row stays free because a block as high as the screen would scroll.
	block := s.board.block(width-1, height-1, now)
	next := fmt.Sprintf("%d %d %q", width, height, block)
	if next == s.last && s.above.Len() == 0 {
		return
	}
	fmt.Fprint(s.w, frame(s.above.String(), block))
	s.above.Reset()
	s.last = next
}

// beat writes a heartbeat for each step that has been running for long.
func (s *Screen) beat(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.board == nil {
		return
	}
	for _, id := range s.board.running() {
		step := s.board.steps[id]
		if now.Sub(step.beat) < heartbeat {
			continue
		}
		step.beat = step.beat.Add(now.Sub(step.beat).Truncate(heartbeat))
		fmt.Fprintf(s.w, "%s: running for %s\n", id, clock(step.beat.Sub(step.started)))
	}
}
