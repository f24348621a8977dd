package atomicfile_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// TestADeviceIsWrittenTo: what is written to a terminal is shown there. The kernel puts no file
// among its terminals, so that a mistake here harms nothing.
func TestADeviceIsWrittenTo(t *testing.T) {
	shown, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, shown.Close()) }()
	require.NoError(t, unix.IoctlSetPointerInt(int(shown.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(shown.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal := fmt.Sprintf("/dev/pts/%d", n)
	open, err := os.OpenFile(terminal, os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, open.Close()) }()
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(terminal, link))
	for _, file := range []string{terminal, link} {
		require.NoError(t, atomicfile.Write(file, []byte("text"), 0o600))
		got := make([]byte, 4)
		_, err := io.ReadFull(shown, got)
		require.NoError(t, err)
		require.Equal(t, "text", string(got))
		_, err = atomicfile.Target(file)
		require.ErrorContains(t, err, "is a special file: give a regular file")
	}
}
