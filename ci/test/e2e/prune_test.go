package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/containers/daggercli"
)

// The engine.json of an engine that collects each cache volume that nothing uses, and of one
// that collects nothing.
const (
	prunes = `{"gc": {"policies": [{"filters": ["type==exec.cachemount"], "maxUsedSpace": "1B"}]}}`
	keeps  = `{"gc": {"enabled": false}}`
)

// TestEngineThatPrunes installs on an engine that throws each deployment away as soon as
// nothing uses it: what is thrown away was never there.
func TestEngineThatPrunes(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-pruned")
	const steps = "preorchestrator/secrets,preorchestrator/tls"
	file := filepath.Join(t.TempDir(), "engine.json")
	require.NoError(t, os.WriteFile(file, []byte(prunes), 0o600))
	engine := secondEngine(t, "--config", file)
	config := write(t, configured)
	command := func(ctx context.Context, name string, args ...string) *exec.Cmd {
		cmd := d.CLI(ctx, name, append([]string{"--config", config}, args...)...)
		cmd.Env = append(cmd.Env, "_EXPERIMENTAL_DAGGER_RUNNER_HOST="+engine.address)
		return cmd
	}
	cli := func(t *testing.T, code int, name string, args ...string) result {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), callLimit)
		defer cancel()
		r := finish(t, command(ctx, name, args...))
		t.Logf("slipway %s %s: exit %d after %s", name, strings.Join(args, " "), r.code, r.took.Round(time.Second))
		require.Equal(t, code, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
		return r
	}
	// A background cluster uses the volumes, so that they stay until it is stopped.
	install := func(t *testing.T) result {
		t.Helper()
		return cli(t, 0, "install", "--until", steps, "--keep-cluster", "--unpublished")
	}
	secrets := func(t *testing.T) string {
		t.Helper()
		return cli(t, 0, "toolchain", "--", "sh", "-ceu", `kubectl get secrets -A -l app.kubernetes.io/managed-by=slipway -o 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.data}{"\n"}{end}' | sort | sha256sum`).out
	}
	restart := func(t *testing.T, text string) {
		t.Helper()
		engine.end()
		finish(t, command(t.Context(), "cluster", "--stop")) // it may be gone with the engine
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		engine.start()
	}
	prune := func(t *testing.T) {
		t.Helper()
		restart(t, prunes)
		time.Sleep(15 * time.Second) // it collects one second after its start
	}

	var first string
	t.Run("an install says what may be lost", func(t *testing.T) {
		require.Contains(t, install(t).out, "warning: the state of deployment e2e-pruned is only on a volume of this Dagger engine")
		first = secrets(t)
	})

	t.Run("an engine as we recommend keeps it, also when it needs space", func(t *testing.T) {
		recommended := strings.NewReplacer(`"40GB"`, `"1B"`, `"5GB"`, `"1B"`).Replace(daggercli.EngineConfig)
		require.Equal(t, 2, strings.Count(recommended, `"1B"`))
		layers := func() int { return layersOf(t, engine.address) }
		restart(t, keeps)
		before := layers()
		require.Greater(t, before, 10)
		restart(t, recommended)
		require.Eventually(t, func() bool { return layers() < before/2 }, time.Minute, time.Second, "layers go")
		require.Equal(t, first, secrets(t))
		require.NotContains(t, install(t).out, "has removed")
	})
	prune(t)

	t.Run("what was thrown away is not installed", func(t *testing.T) {
		require.Contains(t, cli(t, 2, "status").err, "DEP-001")
		require.Contains(t, cli(t, 2, "upgrade", "--to", "1.1.0").err, "DEP-001")
		restart(t, keeps)
		install(t)
		require.NotEqual(t, first, secrets(t), "it is another deployment")
		require.Equal(t, 1, strings.Count(cli(t, 0, "runs").out, " install "))
		first = secrets(t)
	})

	t.Run("a destroy that fails after the cluster is gone is no loss", func(t *testing.T) {
		fails := write(t, configured+"hooks: [{name: fail, after: infrastructure/node-remove, workflows: [destroy], script: 'exit 1'}]\n")
		require.Contains(t, cli(t, 4, "destroy", "--yes", "--config", fails).err, "HOK-001")
		r := cli(t, 2, "status")
		require.Contains(t, r.err, "DEP-001")
		require.Contains(t, r.out, "e2e-pruned: Failed")
		require.NotContains(t, cli(t, 0, "install", "--until", steps).out, "has removed")
		require.NotEqual(t, first, secrets(t), "its cluster is another one")
	})
}

// layersOf counts what an engine has that it may collect, and the volumes.
func layersOf(t *testing.T, address string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "dagger", "core", "engine", "local-cache", "entry-set", "entry-count")
	cmd.Env = append(os.Environ(), "_EXPERIMENTAL_DAGGER_RUNNER_HOST="+address)
	r := finish(t, cmd)
	require.Zero(t, r.code, slipway.Tail(r.err))
	n, err := strconv.Atoi(strings.TrimSpace(r.out))
	require.NoError(t, err)
	return n
}
