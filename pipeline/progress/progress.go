// Package progress shows a run while it goes on: on a terminal as a block of
// lines at its bottom that is drawn again and again, elsewhere as plain lines.
package progress

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

const (
	redraw    = 100 * time.Millisecond // between two frames, at least
	look      = time.Second            // between two looks for a step that needs a heartbeat
	heartbeat = 30 * time.Second       // between two signs of life of a step, in plain lines
)

// The size of a terminal that does not tell its own.
const (
	usualWidth  = 80
	usualHeight = 24
)

// Options say how to show a run. The zero value shows plain lines.
type Options struct {
	// Live keeps a block at the bottom of the terminal.
	Live bool
	// Color marks what went wrong in colour; only a live display does.
	Color bool
	// Size is the terminal's, in columns and rows; asked before each frame. Nil or
	// a 0: 80 columns, 24 rows.
	Size func() (width, height int)
}

// Screen is the stream on which a run shows itself and on which everything else
// is written too, so that nothing is written into the live block. Its methods
// may be called concurrently.
//
// Without a run, and after End, it hands on what is written.
type Screen struct {
	mu      sync.Mutex
	w       io.Writer
	opts    Options
	board   *board // nil before the run and after its end
	above   bytes.Buffer
	partial []byte   // of a line whose end was not written yet
	block   []string // what the terminal shows
	width   int      // of the terminal when it was drawn
	height  int
	quit    chan struct{} // ends the drawing; nil when nothing draws
	drawn   sync.WaitGroup
}

// Open is a screen on w.
func Open(w io.Writer, opts Options) *Screen { return &Screen{w: w, opts: opts} }

// Live tells whether the run is shown in a block, with an estimate.
func (s *Screen) Live() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opts.Live
}

// Plain shows plain lines, whatever w is. It is called before the run.
func (s *Screen) Plain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts = Options{}
}

// Prepare starts the display of a run whose graph is not known yet: of its first
// stage, configure. End ends it.
func (s *Screen) Prepare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.board != nil {
		return
	}
	s.board = newBoard(time.Now())
	quit := make(chan struct{})
	s.quit = quit
	s.drawn.Go(func() { s.animate(quit) })
}

// Begin shows a run of this graph, of which parallel steps run at the same time;
// 0 is no limit. It prepares the display if nobody did.
func (s *Screen) Begin(graph []pipeline.Node, parallel int) {
	s.Prepare()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.board.begin(graph, parallel)
}

// Estimate gives the durations from which the display tells how long the run
// still takes. It may be called at any time, and again.
func (s *Screen) Estimate(usual map[pipeline.Key]time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.board != nil {
		s.board.usual = usual
	}
}

// Observe shows an event of the run. It does not wait for the terminal when the
// display is live.
func (s *Screen) Observe(e pipeline.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := printable(report.Line(e))
	if s.board != nil {
		s.board.observe(e)
	}
	switch {
	case !s.live():
		fmt.Fprintln(s.w, line)
	case e.Status == pipeline.Running:
	case e.Result.Started.IsZero() && (e.Result.Err == nil || e.Status == pipeline.Cancelled):
		// Not a step of this run, or not any more.
	case s.opts.Color:
		fmt.Fprintln(&s.above, coloured(line, e.Status))
	default:
		fmt.Fprintln(&s.above, line)
	}
}

// Say shows what a step tells about itself: "stage/step: text". In the block it
// stands beside the step as long as that runs; what a step told before it ended
// is then in its log.
func (s *Screen) Say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line = printable(line)
	if !s.live() {
		fmt.Fprintln(s.w, "     "+line)
		return
	}
	id, text, _ := strings.Cut(line, ": ")
	switch step := s.board.find(id); {
	case step == nil:
		fmt.Fprintln(&s.above, line)
	case step.running():
		step.says = text
	}
}

// Write writes p; during a live display it appears above the block, line by
// line.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live() {
		return s.w.Write(p)
	}
	s.partial = append(s.partial, p...)
	if at := bytes.LastIndexByte(s.partial, '\n'); at >= 0 {
		s.above.Write(s.partial[:at+1])
		s.partial = append([]byte(nil), s.partial[at+1:]...)
	}
	return len(p), nil
}

// End removes the block and leaves the lines above it. It is called again
// without harm, and also before a panic ends the process.
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
			fmt.Fprintln(&s.above, string(s.partial))
		}
		fmt.Fprint(s.w, frame(s.above.String(), nil))
		s.above.Reset()
		s.partial, s.block = nil, nil
	}
	s.board = nil
}

// live tells whether there is a block now. The caller holds the lock.
func (s *Screen) live() bool { return s.opts.Live && s.board != nil }

// animate draws until quit is closed.
func (s *Screen) animate(quit <-chan struct{}) {
	every, act := look, s.beat
	if s.Live() {
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

// draw brings the terminal up to date; it writes nothing when it is.
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
		width, height = usualWidth, usualHeight
	}
	// The last column stays free: a character in it makes some terminals break the
	// line. So does the last row of a block as high as the screen.
	block := s.board.block(width-1, height-1, now)
	same := width == s.width && height == s.height && len(block) == len(s.block)
	for i := 0; same && i < len(block); i++ {
		same = block[i] == s.block[i]
	}
	if same && s.above.Len() == 0 {
		return
	}
	fmt.Fprint(s.w, frame(s.above.String(), block))
	s.above.Reset()
	s.block, s.width, s.height = block, width, height
}

// beat gives a sign of life of each step that runs for long.
func (s *Screen) beat(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.board == nil {
		return
	}
	for _, key := range s.board.running() {
		step := s.board.steps[key]
		if now.Sub(step.beat) < heartbeat {
			continue
		}
		step.beat = step.beat.Add(now.Sub(step.beat).Truncate(heartbeat))
		fmt.Fprintf(s.w, "%s: running for %s\n", key, clock(step.beat.Sub(step.started)))
	}
}
