package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestChaos is the short form of `make chaos`: the engine, or a step, is killed at a random
// moment of the first half of an install, and what comes out is compared with one that
// nobody disturbed. It runs before the tests that share the engine, which are parallel.
func TestChaos(t *testing.T) {
	t.Run("the reference platform", func(t *testing.T) {
		chaos(t, "--kinds", "engine", "--to", "preorchestrator/secrets")
	})
	t.Run("a platform without GitOps", func(t *testing.T) {
		chaos(t, "--kinds", "step", "--to", "orchestrator/databases", "--platform", "examples/platform/manifests/1.0.0")
	})
}

// chaos plays one round.
func chaos(t *testing.T, args ...string) {
	t.Helper()
	d := open(t, "e2e-chaos")
	logs := filepath.Join(t.TempDir(), "logs")
	cmd := exec.CommandContext(t.Context(), "go", "run", "-C", "..", "./chaos", "--rounds", "1", "--name", d.Name, "--bundle", d.Bundle, "--logs", logs)
	cmd.Args = append(cmd.Args, args...)
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
	require.Contains(t, string(out), "1 of 1 equal")
}
