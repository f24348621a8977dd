package progress_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-sh/slipway/pipeline/progress"
)

// pty opens a pseudo-terminal and returns both ends.
func pty(t *testing.T) (control, terminal *os.File) {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = control.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	return control, terminal
}

func TestTerminal(t *testing.T) {
	control, terminal := pty(t)
	require.NoError(t, unix.IoctlSetWinsize(int(control.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 132}))
	plain, err := os.Create(t.TempDir() + "/log")
	require.NoError(t, err)
	defer func() { require.NoError(t, plain.Close()) }()
	for name, c := range map[string]struct {
		w           io.Writer
		env         string
		live, color bool
	}{
		"a terminal":       {terminal, "TERM=xterm", true, true},
		"no colour":        {terminal, "TERM=xterm NO_COLOR=1", true, false},
		"dumb":             {terminal, "TERM=dumb", false, false},
		"unknown":          {terminal, "", false, false},
		"CI":               {terminal, "TERM=xterm CI=true", false, false},
		"not CI":           {terminal, "TERM=xterm CI=false", true, true},
		"a Dagger session": {terminal, "TERM=xterm DAGGER_SESSION_PORT=1234", false, false},
		"a file":           {plain, "TERM=xterm", false, false},
		"a buffer":         {&bytes.Buffer{}, "TERM=xterm", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := progress.Terminal(c.w, func(key string) string {
				for _, pair := range strings.Fields(c.env) {
					if value, ok := strings.CutPrefix(pair, key+"="); ok {
						return value
					}
				}
				return ""
			})
			require.Equal(t, c.live, o.Live)
			require.Equal(t, c.color, o.Color)
			if !c.live {
				return
			}
			width, height := o.Size()
			require.Equal(t, [2]int{132, 40}, [2]int{width, height})
			require.NoError(t, unix.IoctlSetWinsize(int(control.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 10, Col: 20}))
			width, height = o.Size()
			require.Equal(t, [2]int{20, 10}, [2]int{width, height})
			require.NoError(t, unix.IoctlSetWinsize(int(control.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 132}))
		})
	}
}
