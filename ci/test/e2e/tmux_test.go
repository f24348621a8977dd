package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// update writes the goldens anew; CONTRIBUTING.md has the command.
var update = flag.Bool("update", false, "write the goldens anew")

// screenLimit is how long a picture may take to be there.
const screenLimit = time.Minute

// screen is a program in tmux, a terminal whose picture can be read.
type screen struct {
	t      *testing.T
	socket string
	story  strings.Builder // what was pressed, and what was seen then
}

// inTmux starts a program on a terminal of 100 columns and 50 lines. Its exit code is
// shown when it has ended; the terminal outlasts the whole test run.
func inTmux(t *testing.T, dir string, env []string, program string, args ...string) *screen {
	t.Helper()
	_, err := exec.LookPath("tmux")
	require.NoError(t, err, "apt-get install tmux")
	s := &screen{t: t, socket: filepath.Join(t.TempDir(), "tmux")}
	line := []string{"env"}
	for _, word := range append(append(env, program), args...) {
		line = append(line, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	s.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "50", "-c", dir, strings.Join(line, " ")+`; printf '\n[exit %d]' $?; exec sleep 4000`)
	t.Cleanup(func() { s.tmux("kill-server") })
	return s
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	require.NoError(s.t, err, "tmux %v: %s", args, out)
	return string(out)
}

// picture is what the screen shows.
func (s *screen) picture() string {
	s.t.Helper()
	return strings.TrimRight(regexp.MustCompile(`(?m) +$`).ReplaceAllString(s.tmux("capture-pane", "-p"), ""), "\n")
}

// busy reports whether anything that runs in the terminal has work for a processor. On a
// machine that is short of them, a picture may stay what it is for seconds although more
// of it is to come.
func (s *screen) busy() bool {
	s.t.Helper()
	for pids := strings.Fields(s.tmux("display-message", "-p", "#{pane_pid}")); len(pids) > 0; pids = pids[1:] {
		threads, _ := filepath.Glob("/proc/" + pids[0] + "/task/*") // none, of what has ended since
		for _, thread := range threads {
			stat, _ := os.ReadFile(thread + "/stat")
			if _, after, ok := strings.Cut(string(stat), ") "); ok && !strings.HasPrefix(after, "S") && !strings.HasPrefix(after, "Z") {
				return true
			}
			children, _ := os.ReadFile(thread + "/children")
			pids = append(pids, strings.Fields(string(children))...)
		}
	}
	return false
}

// until is the screen once ok holds for two pictures that follow each other and are
// the same, and nothing is busy; the last picture when that takes longer than limit and
// nothing is busy any more, or ten times limit.
func (s *screen) until(limit time.Duration, ok func(picture string) bool) (picture string, held bool) {
	s.t.Helper()
	last := ""
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		picture, busy := s.picture(), s.busy()
		if !busy && picture == last && ok(picture) {
			return picture, true
		}
		last = picture
		if took := time.Since(begin); took > limit && !busy || took > 10*limit {
			return picture, false
		}
	}
}

// shows waits until the screen shows text.
func (s *screen) shows(text string) string {
	s.t.Helper()
	picture, ok := s.until(screenLimit, func(p string) bool { return strings.Contains(p, text) })
	require.True(s.t, ok, "the screen does not show %q:\n%s", text, picture)
	return picture
}

// waits reports whether a picture is one on which something waits for a key: a field of
// a form, a line, or the end. Between two fields none does, and keys go astray.
func waits(picture string) bool {
	return strings.Contains(picture, "┃") || strings.Contains(picture, "[exit ") || strings.HasSuffix(picture, ":")
}

// press presses keys, by their names in tmux; a text begins with =. After each it
// waits for the picture to change, which a few keys do not.
func (s *screen) press(keys ...string) {
	s.t.Helper()
	for _, key := range keys {
		before := s.picture()
		if text, ok := strings.CutPrefix(key, "="); ok {
			s.tmux("send-keys", "-l", text)
		} else {
			s.tmux("send-keys", key)
		}
		s.until(3*time.Second, func(p string) bool { return p != before && waits(p) })
	}
}

// after presses keys and enters into the story what the screen shows then.
func (s *screen) after(text string, keys ...string) {
	s.t.Helper()
	s.press(keys...)
	fmt.Fprintf(&s.story, "──── %s\n%s\n", strings.Join(keys, " "), s.shows(text))
}

// requireStory compares the story with a golden.
func (s *screen) requireStory(name string) {
	s.t.Helper()
	got := s.story.String()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(s.t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(s.t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(s.t, err)
	require.Equal(s.t, string(want), got)
}
