package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/pipeline"
)

// sparsely is the time between two messages of a step that is shown sparsely, at least.
const sparsely = 5 * time.Second

// Sparsely has plain lines show few of a step's messages, which replace each other fast: one
// now and then, and the last. It must be called before the run.
func (s *Screen) Sparsely(key pipeline.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sparse == nil {
		s.sparse = map[pipeline.Key]*sparse{}
	}
	s.sparse[key] = &sparse{}
}

// sparse shows the messages of one step. Its zero value has shown none.
type sparse struct {
	shown time.Time // when one was shown last
	held  string    // the last one, if it was not shown
	ended bool      // the step has
}

// message shows a message, or keeps it back.
func (t *sparse) message(w io.Writer, line string, now time.Time) {
	if !t.ended && !t.shown.IsZero() && now.Sub(t.shown) < sparsely {
		t.held = line
		return
	}
	t.shown, t.held = now, ""
	writeMessage(w, line)
}

// end shows what was kept back: the step has ended. A message that comes late is shown, too.
func (t *sparse) end(w io.Writer) {
	if t.held != "" {
		writeMessage(w, t.held)
	}
	t.held, t.ended = "", true
}

// keyOf is the key of the step "stage/name".
func keyOf(id string) pipeline.Key {
	stage, name, _ := strings.Cut(id, "/")
	return pipeline.Key{Stage: stage, Name: name}
}

func writeMessage(w io.Writer, line string) { fmt.Fprintln(w, "     "+line) }
