package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// terminal is a program on a terminal, as a person runs it.
type terminal struct {
	cmd     *exec.Cmd
	control *os.File // the other end of the program's terminal
	ended   chan struct{}
	err     error         // how; read after ended
	drained chan struct{} // closed when nobody has the terminal any more

	mu    sync.Mutex
	text  strings.Builder
	grown chan struct{} // closed when there is more text, and replaced
}

// onTerminal starts cmd on a terminal of its own. It ends with the test.
func onTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	raw, err := control.SyscallConn() // Fd would let Read outlive Close
	require.NoError(t, err)
	var n int
	require.NoError(t, raw.Control(func(fd uintptr) {
		n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		err = errors.Join(err, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0),
			unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 160}))
	}))
	require.NoError(t, err)
	own, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = own, own, own
	cmd.Env = append(cmd.Env, "TERM=xterm", "CI=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // as a login does
	require.NoError(t, cmd.Start())
	require.NoError(t, own.Close())
	p := &terminal{cmd: cmd, control: control, ended: make(chan struct{}), drained: make(chan struct{}), grown: make(chan struct{})}
	go func() {
		defer close(p.drained)
		for buf := make([]byte, 4096); ; {
			n, err := control.Read(buf)
			p.mu.Lock()
			p.text.Write(buf[:n])
			close(p.grown)
			p.grown = make(chan struct{})
			p.mu.Unlock()
			if err != nil { // EIO: nobody has the terminal any more
				return
			}
		}
	}()
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.ended
		_ = control.Close()
		<-p.drained
	})
	return p
}

// shown is what the terminal got so far, and what is closed when there is more.
func (p *terminal) shown() (string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String(), p.grown
}

// all is what a program that has ended showed.
func (p *terminal) all() string {
	select {
	case <-p.drained:
	case <-time.After(10 * time.Second): // what it has left behind has the terminal
	}
	text, _ := p.shown()
	return text
}

// until returns once the terminal shows what matches.
func (p *terminal) until(t *testing.T, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	for {
		text, more := p.shown()
		if re.MatchString(text) {
			return
		}
		select {
		case <-more:
		case <-p.ended:
			if text = p.all(); !re.MatchString(text) {
				t.Fatalf("it ended (%v) without %q:\n%s", p.err, pattern, slipway.Tail(text))
			}
			return
		case <-ctx.Done():
			t.Fatalf("%v without %q:\n%s", ctx.Err(), pattern, slipway.Tail(text))
		}
	}
}

// press presses keys.
func (p *terminal) press(t *testing.T, keys string) {
	t.Helper()
	_, err := p.control.WriteString(keys)
	require.NoError(t, err)
}

// wait is the exit code, once the program has ended, and all that it showed.
func (p *terminal) wait(t *testing.T, limit time.Duration) (int, string) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		text, _ := p.shown()
		t.Fatalf("it has not ended after %s:\n%s", limit, slipway.Tail(text))
	}
	return p.cmd.ProcessState.ExitCode(), p.all()
}

// TestTerminal: the terminal of these tests is one, and Ctrl-C interrupts what runs
// on it.
func TestTerminal(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `test -t 2 && trap 'echo interrupted; exit 7' INT && echo ready && while :; do sleep 0.1; done`)
	p := onTerminal(t, cmd)
	p.until(t, "ready")
	p.press(t, "\x03")
	code, text := p.wait(t, 10*time.Second)
	require.Equal(t, 7, code, text)
	require.Equal(t, "ready\r\n^Cinterrupted\r\n", text)
}
