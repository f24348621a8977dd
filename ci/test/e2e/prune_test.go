package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/containers/engineconfig"
)

// The engine.json of an engine that collects each cache volume that nothing uses, and of one
// that collects nothing.
const (
	prunes = `{"gc": {"policies": [{"filters": ["type==exec.cachemount"], "maxUsedSpace": "1B"}]}}`
	keeps  = `{"gc": {"enabled": false}}`
)

// TestEngineThatPrunes installs on an engine that throws each deployment away as soon as
// nothing uses it: that is refused unless it is wanted, and what is thrown away is known, made
// again with the same secrets.
func TestEngineThatPrunes(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-pruned")
	const steps = "preorchestrator/secrets,preorchestrator/tls"
	file := filepath.Join(t.TempDir(), "engine.json")
	require.NoError(t, os.WriteFile(file, []byte(prunes), 0o600))
	engine := secondEngine(t, "--config", file)
	data, config := t.TempDir(), write(t, configured)
	command := func(ctx context.Context, name string, args ...string) *exec.Cmd {
		cmd := d.CLI(ctx, name, append([]string{"--config", config}, args...)...)
		cmd.Env = append(cmd.Env, "_EXPERIMENTAL_DAGGER_RUNNER_HOST="+engine.address, "SLIPWAY_DATA_DIR="+data)
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
	copies := func() []string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(data, "state", d.Name, "*", "*", "copy.json"))
		require.NoError(t, err)
		return files
	}
	// A background cluster uses the volumes, so that they stay until it is stopped.
	install := func(t *testing.T) result {
		t.Helper()
		return cli(t, 0, "install", "--until", steps, "--ephemeral", "--keep-cluster", "--unpublished")
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

	t.Run("an install is refused", func(t *testing.T) {
		r := cli(t, 3, "install", "--until", steps)
		require.Contains(t, r.err, "ENG-011")
		require.Contains(t, r.err, "1 bytes used at most")
		require.Contains(t, r.err, "--ephemeral")
		require.Contains(t, r.err, `"filters": ["type!=exec.cachemount"]`)
		require.Empty(t, copies())
		require.Contains(t, cli(t, 2, "status").err, "DEP-001", "nothing was started")
	})

	var first string
	t.Run("one that may be lost is installed", func(t *testing.T) {
		require.NotContains(t, install(t).out, "warning: ")
		first = secrets(t)
		require.Len(t, copies(), 1)
	})

	t.Run("an engine as we recommend keeps it, also when it needs space", func(t *testing.T) {
		recommended := strings.NewReplacer(`"40GB"`, `"1B"`, "5368709121", "1").Replace(engineconfig.Text)
		require.Equal(t, 2, strings.Count(recommended, `"1B"`)+strings.Count(recommended, ": 1,"))
		layers := func() int { return layersOf(t, engine.address) }
		restart(t, keeps)
		before := layers()
		require.Greater(t, before, 10)
		restart(t, recommended)
		require.Eventually(t, func() bool { return layers() < before/2 }, time.Minute, time.Second, "layers go")
		require.Equal(t, first, secrets(t))
		require.NotContains(t, install(t).out, "thrown away")
	})
	prune(t)

	t.Run("what was thrown away is known", func(t *testing.T) {
		r := cli(t, 2, "status", "--output", "json")
		require.Contains(t, r.err, "DEP-010")
		require.Contains(t, r.err, "the engine has thrown away the cluster of deployment e2e-pruned with all data in it, and its state")
		var s status
		require.NoError(t, json.Unmarshal([]byte(r.out), &s))
		require.Equal(t, "succeeded", s.Outcome)
		require.Equal(t, "Lost", s.State)
		for _, asked := range [][]string{{"kubeconfig"}, {"runs"}, {"report", "--output", filepath.Join(t.TempDir(), "report")}, {"backups"}} {
			require.Contains(t, cli(t, 2, asked[0], asked[1:]...).err, "DEP-010", asked)
		}
		require.Len(t, copies(), 1, "who only looks removes nothing")
		require.Contains(t, cli(t, 2, "upgrade", "--to", "1.1.0").err, "DEP-010")
		never := d
		never.Name = "e2e-never"
		cmd := never.CLI(t.Context(), "status", "--config", config)
		cmd.Env = append(cmd.Env, "_EXPERIMENTAL_DAGGER_RUNNER_HOST="+engine.address, "SLIPWAY_DATA_DIR="+data)
		require.Contains(t, finish(t, cmd).err, "DEP-001")
		require.Contains(t, cli(t, 3, "install", "--until", steps).err, "ENG-011", "it is a first install")
	})

	t.Run("it is installed again, with the same secrets", func(t *testing.T) {
		r := install(t)
		require.Contains(t, r.out, "warning: the engine has thrown away the cluster of deployment e2e-pruned with all data in it, and its state")
		require.Contains(t, r.out, "the state was restored from a copy")
		require.NotRegexp(t, `(?m)^\s*preorchestrator/secrets\s+reused`, r.out)
		require.Equal(t, first, secrets(t))
		require.Equal(t, 3, strings.Count(cli(t, 0, "runs").out, " install "), "the records of the runs before, too")
		require.Len(t, copies(), 1)
	})

	t.Run("a destroy that fails after the cluster is gone is no loss", func(t *testing.T) {
		restart(t, keeps)
		fails := write(t, configured+"hooks: [{name: fail, after: infrastructure/node-remove, workflows: [destroy], script: 'exit 1'}]\n")
		require.Contains(t, cli(t, 4, "destroy", "--yes", "--config", fails).err, "HOK-001")
		r := cli(t, 2, "status")
		require.Contains(t, r.err, "DEP-001")
		require.Contains(t, r.out, "e2e-pruned: Failed")
		require.NotContains(t, cli(t, 0, "install", "--until", steps, "--ephemeral").out, "thrown away")
		require.Equal(t, first, secrets(t), "it was not destroyed to the end")
	})

	t.Run("a destroy forgets it", func(t *testing.T) {
		prune(t)
		cli(t, 0, "destroy", "--yes")
		require.Empty(t, copies())
		require.Contains(t, cli(t, 2, "status").err, "DEP-001")
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
