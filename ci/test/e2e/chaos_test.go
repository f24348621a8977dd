package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestChaosOfTheEngine is, as TestChaosOfAStep, the short form of `make chaos`: something is
// killed at a random moment of the first half of an install, and what comes out is compared
// with an install that nobody disturbed. It runs before the tests that share the engine,
// which are parallel.
func TestChaosOfTheEngine(t *testing.T) {
	chaos(t, "e2e-chaos", "--kinds", "engine", "--to", "orchestrator/databases", "--platform", "examples/platform/manifests/1.0.0")
}

func TestChaosOfAStep(t *testing.T) {
	t.Parallel()
	chaos(t, "e2e-chaos-step", "--kinds", "step", "--config", write(t, configured+"local: {apiPort: 6843}\n"), "--to", "preorchestrator/secrets")
}

// chaos plays one round.
func chaos(t *testing.T, name string, args ...string) {
	t.Helper()
	d := open(t, name)
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
