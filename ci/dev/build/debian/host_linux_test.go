package debian

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestABuildLeavesThisMachinesAptAlone builds a root from the machine's mirror while another
// apt, this process, has every lock of apt and dpkg.
func TestABuildLeavesThisMachinesAptAlone(t *testing.T) {
	if _, err := exec.LookPath("mmdebstrap"); err != nil || os.Geteuid() != 0 {
		t.Skip("root builds Debian roots, with mmdebstrap")
	}
	rel, err := HostRelease("/")
	require.NoError(t, err)
	for _, name := range []string{"/var/lib/apt/lists/lock", "/var/cache/apt/archives/lock", "/var/lib/dpkg/lock", "/var/lib/dpkg/lock-frontend"} {
		occupy(t, name)
	}
	t.Setenv("TMPDIR", t.TempDir())
	dirs := []string{"/etc/apt", "/var/lib/apt", "/var/cache/apt", "/var/lib/dpkg", "/var/log/apt", os.Getenv("TMPDIR")}
	before := files(t, dirs...)
	require.NotEmpty(t, before)
	require.NoError(t, Root{Name: "r", Release: rel}.Make(t.Context(), t.TempDir()))
	after := files(t, dirs...)
	for name := range after {
		if after[name] == before[name] {
			delete(before, name)
			delete(after, name)
		}
	}
	require.Equal(t, before, after, "what changed on this machine")
}

// occupy holds a lock as apt does, until the test ends. It waits for whoever has it.
func occupy(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	require.Eventually(t, func() bool {
		return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}) == nil
	}, 2*time.Minute, 100*time.Millisecond, name)
}

// files are all files below the folders that exist, each with its mode, and size and time unless
// it is a folder.
func files(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			continue
		}
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			found[path] = info.Mode().String()
			if !d.IsDir() {
				found[path] += fmt.Sprint(" ", info.Size(), " ", info.ModTime())
			}
			return nil
		}))
	}
	return found
}
