package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/pipeline/lock"
)

// over is how long after a holder's last sign of life another run may take its lock.
const over = lock.DefaultTTL + lock.DefaultBeat + lock.DefaultGrace

// TestChaos is the short form of `make chaos`: of the platform of manifests four installs
// are disturbed at a random moment, by killing the engine, a step, and what holds the lock
// while another install begins, and by stopping what holds the lock for longer than another run
// waits for its holder. What comes out is compared with an install that nobody
// disturbed. It runs before the tests that share the
// engine, which are parallel. Those of the reference platform, and those on a cluster that is
// there already, are killed by TestLifecycle and TestExistingCluster.
func TestChaos(t *testing.T) {
	d := open(t, "e2e-chaos")
	logs := filepath.Join(t.TempDir(), "logs")
	cmd := exec.CommandContext(t.Context(), "go", "run", "-C", "..", "./chaos", "--rounds", "4", "--kinds", "engine,step,hold,pause-hold",
		"--pause", (over + 10*time.Second).String(),
		"--platform", "examples/platform/manifests/1.0.0", "--name", d.Name, "--bundle", d.Bundle, "--logs", logs)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		files, globErr := filepath.Glob(filepath.Join(logs, "*.log"))
		require.NoError(t, globErr)
		for _, file := range files {
			text, readErr := os.ReadFile(file)
			require.NoError(t, readErr)
			t.Logf("%s:\n%s", filepath.Base(file), slipway.Tail(string(text)))
		}
	}
	require.NoError(t, err)
	require.Contains(t, string(out), "4 of 4 equal")
}
