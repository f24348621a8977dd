package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/pipeline/lock"
)

// over is how long after a holder's last sign of life another run may take its lock.
const over = lock.DefaultTTL + lock.DefaultBeat + lock.DefaultGrace

// TestChaosOfTheEngine and TestChaosOfTheHolder are the short form of `make chaos`: installs of
// the platform of manifests are disturbed at random moments, and what comes out is compared with an
// install that nobody disturbed. Installs of the reference platform, and on a cluster that is
// there already, are killed by TestLifecycle and TestExistingCluster. This one kills the engine,
// before the tests that share it, which are parallel.
func TestChaosOfTheEngine(t *testing.T) {
	takesLong(t)
	chaos(t, open(t, "e2e-chaos"), "kill-engine")
}

// TestChaosOfTheHolder stops the lock holder for longer than another run waits for the lock; then
// it kills the holder while another install begins, and last a step.
func TestChaosOfTheHolder(t *testing.T) {
	takesLong(t)
	beside(t)
	chaos(t, open(t, "e2e-holder"), "stop-holder,contend-killed,kill-step", "--config", write(t, configured+"local: {apiPort: 9943}\n"), "--pause", (over + 10*time.Second).String())
}

// TestChaosOfTwoEngines: each is on a machine of its own, and what they have in common is a bucket
// with the state and a cluster. One installs; the other one begins to, in one round while the first
// one's machine works, in the other one while it is stopped, and with it the engine that the tests
// share, so that this is not parallel.
func TestChaosOfTwoEngines(t *testing.T) {
	takesLong(t)
	r := startRegistry(t)
	second := secondEngine(t)
	host := open(t, "e2e-host") // on the second engine, for the first one is stopped
	host.Env = append(host.Env, "_EXPERIMENTAL_DAGGER_RUNNER_HOST="+second.address)
	there, kubeconfig := another(t, r, host)
	admit(t, engineNetwork(t, r.bridge), engineNetwork(t, strings.Fields(there.shell(t, "getent hosts cluster"))[0])) // its load balancer's address
	d := open(t, "e2e-rivals")
	config := write(t, configured+fmt.Sprintf("provider: existing\nexisting: {kubeconfig: %q, registry: %q}\n", "file:"+kubeconfig, r.bridge+"/team/slipway"))
	lock := r.push(t, d.Bundle, filepath.Join(t.TempDir(), "slipway.lock.json"))
	out := chaos(t, d, "contend,contend-stopped", "--config", config, "--lock", lock, "--bucket", "--other-engine", second.address)
	require.Contains(t, out, "another one while it works: ")
	require.Contains(t, out, "another one while its machine is stopped: it took over, it ended with 6 LOK-002")
}

// chaos plays a round of each kind, and returns what is printed of them.
func chaos(t *testing.T, d deployment, kinds string, args ...string) string {
	t.Helper()
	logs := filepath.Join(t.TempDir(), "logs")
	rounds := strconv.Itoa(1 + strings.Count(kinds, ","))
	cmd := exec.CommandContext(t.Context(), "go", append([]string{
		"run", "-C", "..", "./chaos", "--rounds", rounds, "--kinds", kinds,
		"--platform", "examples/platform/manifests/1.0.0", "--name", d.Name, "--bundle", d.Bundle, "--logs", logs,
	}, args...)...)
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
	require.NoError(t, err, slipway.Tail(string(out)))
	require.Contains(t, string(out), rounds+" of "+rounds+" equal")
	return string(out)
}
