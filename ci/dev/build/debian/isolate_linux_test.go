package debian

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMountsOfABuildStayInside mounts the way mmdebstrap does and ends without
// unmounting, as one that is killed.
func TestMountsOfABuildStayInside(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", `mount -t tmpfs none "$1" && grep -c " $1 " /proc/self/mountinfo; kill -9 $$`, "sh", dir)
	cmd.SysProcAttr = isolated()
	out, err := cmd.Output()
	require.Error(t, err, "it was killed")
	require.Equal(t, "1\n", string(out), "it had its mount")
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), dir)
}
