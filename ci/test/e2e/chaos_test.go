package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestChaos is the short form of `make chaos`: of the platform of manifests three installs
// are disturbed at a random moment, by killing the engine, a step, and what holds the lock
// while another install begins, and what comes out is compared with an install that nobody
// disturbed. It runs before the tests that share the
// engine, which are parallel. Those of the reference platform, and those on a cluster that is
// there already, are killed by TestLifecycle and TestExistingCluster.
func TestChaos(t *testing.T) {
	d := open(t, "e2e-chaos")
	logs := filepath.Join(t.TempDir(), "logs")
	cmd := exec.CommandContext(t.Context(), "go", "run", "-C", "..", "./chaos", "--rounds", "3", "--kinds", "engine,step,hold",
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
	require.Contains(t, string(out), "3 of 3 equal")
}
