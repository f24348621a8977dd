package progress_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/progress"
)

// screen is a terminal: lines, a cursor, and the control sequences that a frame
// is made of. Any other sequence fails the test.
type screen struct {
	t *testing.T

	mu            sync.Mutex
	width, height int
	rows          []row // all that were ever there; the last height of them are visible
	y, x          int   // of the cursor; y counts from the first row ever
	writes        int   // how often something was written
	wrapped       int   // rows that were begun because one was full
}

// row is one of the terminal's rows.
type row struct {
	cells []rune
	soft  bool // goes on in the next row
}

func newScreen(t *testing.T, width, height int) *screen {
	return &screen{t: t, width: width, height: height, rows: make([]row, 1)}
}

func (s *screen) size() (int, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.width, s.height
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	text := string(p)
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			at := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			require.GreaterOrEqual(s.t, at, 0, "a control sequence goes over two writes")
			s.control(rest[:at], rest[at])
			text = rest[at+1:]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		s.put(r)
	}
	return len(p), nil
}

func (s *screen) control(arg string, what byte) {
	n := 1
	if arg != "" {
		n, _ = strconv.Atoi(arg)
	}
	switch what {
	case 'A':
		s.y = max(s.y-n, s.top())
	case 'J':
		require.Empty(s.t, arg)
		s.rows = s.rows[:s.y+1]
		s.rows[s.y].cells = s.rows[s.y].cells[:min(s.x, len(s.rows[s.y].cells))]
	case 'm':
	default:
		require.Fail(s.t, "an unknown control sequence", "%q", arg+string(what))
	}
}

func (s *screen) top() int { return max(0, len(s.rows)-s.height) }

func (s *screen) put(r rune) {
	switch {
	case r == '\n':
		s.down(false)
	case r == '\r':
		s.x = 0
	case r < ' ':
		require.Fail(s.t, "an unknown control character", "%q", r)
	default:
		if s.x == s.width {
			s.wrapped++
			s.down(true)
		}
		line := &s.rows[s.y]
		for len(line.cells) <= s.x {
			line.cells = append(line.cells, ' ')
		}
		line.cells[s.x] = r
		s.x++
	}
}

func (s *screen) down(soft bool) {
	s.rows[s.y].soft = soft
	s.x = 0
	if s.y++; s.y == len(s.rows) {
		s.rows = append(s.rows, row{})
	}
}

// resize changes the size. A terminal that reflows breaks its lines anew and
// moves the cursor with the text; others cut them off.
func (s *screen) resize(width, height int, reflow bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.width, s.height = width, height
	if !reflow {
		for i := range s.rows {
			s.rows[i].cells = s.rows[i].cells[:min(width, len(s.rows[i].cells))]
		}
		return
	}
	var rows []row
	y, x := 0, 0
	for i := 0; i < len(s.rows); {
		var line []rune
		cursor := -1
		for ; ; i++ {
			if i == s.y {
				cursor = len(line) + s.x
			}
			line = append(line, s.rows[i].cells...)
			if !s.rows[i].soft {
				i++
				break
			}
		}
		if cursor >= 0 {
			y, x = len(rows)+cursor/width, cursor%width
		}
		for len(line) > width {
			rows = append(rows, row{line[:width:width], true})
			line = line[width:]
		}
		rows = append(rows, row{cells: line})
	}
	s.rows, s.y, s.x = rows, y, x
}

// shot returns what the terminal shows in a frame, with the cursor's position.
func (s *screen) shot() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	bar := "+" + strings.Repeat("-", s.width) + "+\n"
	b.WriteString(bar)
	for i := s.top(); i < len(s.rows); i++ {
		fmt.Fprintf(&b, "|%s%s|\n", string(s.rows[i].cells), strings.Repeat(" ", s.width-len(s.rows[i].cells)))
	}
	fmt.Fprintf(&b, "%scursor in row %d, column %d\n", bar, s.y-s.top()+1, s.x+1)
	return b.String()
}

// text returns every line that was ever shown.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, r := range s.rows {
		b.WriteString(string(r.cells))
		if !r.soft {
			b.WriteByte('\n')
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func (s *screen) count() (writes, wrapped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes, s.wrapped
}

// TestTheEnginesLogDoesNothingToTheTerminal, in whatever pieces it comes.
func TestTheEnginesLogDoesNothingToTheTerminal(t *testing.T) {
	for _, live := range []bool{false, true} {
		var out strings.Builder
		s := progress.Open(&out, progress.Options{Live: live, Size: func() (int, int) { return 80, 24 }})
		if live {
			s.Prepare()
		}
		for _, part := range []string{"a\x1b]52;c;", "cm0=\ab \x1b[3", "1mred\u202e \u009b2Jend\n", "no line \x1b[1mat the end"} {
			_, err := s.Write([]byte(part))
			require.NoError(t, err)
		}
		s.End()
		require.Contains(t, out.String(), "ab red end\n")
		for _, raw := range []string{"\x1b]", "\x1b[3", "\u202e", "\u009b", "\x1b[1m"} {
			require.NotContains(t, out.String(), raw, "live: %v", live)
		}
	}
}
