package e2e

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// machine is one on which somebody works on a deployment.
type machine struct {
	deployment
	config string
	env    []string
}

// cli is `slipway command`, which must end with that code.
func (m machine) cli(t *testing.T, code int, command string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	cmd := m.CLI(ctx, command, append([]string{"--config", m.config}, args...)...)
	cmd.Env = append(cmd.Env, m.env...)
	r := finish(t, cmd)
	t.Logf("slipway %s %s (%s): exit %d after %s", command, strings.Join(args, " "), m.env, r.code, r.took.Round(time.Second))
	require.Equal(t, code, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
	return r
}

// placed is what status says of where a deployment is.
type placed struct {
	status
	Elsewhere bool
}

func (m machine) status(t *testing.T) (s placed) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(m.cli(t, 0, "status", "--output", "json").out), &s))
	return s
}

// TestTwoEnginesOnOneBucket: the cluster is on one of them. The other one reads the records, and an
// install makes a cluster of its own there.
func TestTwoEnginesOnOneBucket(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-engines")
	server := startS3(t)
	config := server.configuration(t, ageKey(t))
	on := func(engine string) machine {
		return machine{d, config, []string{"_EXPERIMENTAL_DAGGER_RUNNER_HOST=" + engine, "E2E_ID=" + s3ID, "E2E_SECRET=" + s3Secret}}
	}
	a, b := on(os.Getenv("_EXPERIMENTAL_DAGGER_RUNNER_HOST")), on(secondEngine(t).address)
	const last = "infrastructure/cluster"
	uid := func(t *testing.T, m machine) string {
		t.Helper()
		return m.cli(t, 0, "toolchain", "--", "kubectl", "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}").out
	}
	a.cli(t, 0, "destroy", "--yes") // whatever an earlier run of the tests left on the engine
	a.cli(t, 0, "install", "--until", last)
	cluster := uid(t, a)
	require.False(t, a.status(t).Elsewhere)

	t.Run("the other engine has the records and no cluster", func(t *testing.T) {
		runs := a.cli(t, 0, "runs").out
		require.Equal(t, runs, b.cli(t, 0, "runs").out)
		require.True(t, b.status(t).Elsewhere)
		require.Contains(t, b.cli(t, 0, "status", "--live").out, "The cluster is not on this engine")
		for _, command := range [][]string{{"toolchain", "--", "true"}, {"upgrade", "--to", "1.1.0"}} {
			r := b.cli(t, 2, command[0], command[1:]...)
			require.Contains(t, r.err, "DEP-010")
			require.Contains(t, r.err, "the cluster of deployment e2e-engines is not on this engine")
		}
		require.Equal(t, runs, b.cli(t, 0, "runs").out)
		require.Equal(t, cluster, uid(t, a))
		require.Regexp(t, `(?m)^\s*infrastructure/terraform\s+reused`, a.cli(t, 0, "install", "--until", last).out)
	})

	t.Run("an install makes another cluster there", func(t *testing.T) {
		r := b.cli(t, 0, "install", "--until", last)
		require.Contains(t, r.out, "warning: the cluster of deployment e2e-engines is not on this engine")
		require.NotEqual(t, cluster, uid(t, b))
		require.False(t, b.status(t).Elsewhere)
		require.NotContains(t, b.cli(t, 0, "install", "--until", last).out, "is not on this engine", "now it is")
	})

	t.Run("a destroy frees the name for both", func(t *testing.T) {
		b.cli(t, 0, "destroy", "--yes")
		for _, key := range server.keys(t) {
			require.Regexp(t, `^team/`+d.Name+`/(latest|lock|runs)/`, key)
		}
		require.Contains(t, a.cli(t, 2, "status").err, "DEP-001")
		a.cli(t, 0, "install", "--until", last)
		require.Equal(t, cluster, uid(t, a), "what was left here was not touched")
		a.cli(t, 0, "destroy", "--yes")
	})

	t.Run("a key that was made on an engine that is gone", func(t *testing.T) {
		a, b := a, b
		a.config = server.configuration(t, "")
		b.config = a.config
		a.cli(t, 0, "install", "--until", last)
		r := b.cli(t, 2, "install", "--until", last)
		require.Contains(t, r.err, "SEC-002")
		require.Contains(t, r.err, "slipway destroy removes the deployment, all its data included")
		require.Regexp(t, `(?m)^\s*infrastructure/terraform\s+reused`, a.cli(t, 0, "install", "--until", last).out)
		require.Contains(t, b.cli(t, 0, "destroy", "--yes").out, "only the deployment's state is removed")
		for _, key := range server.keys(t) {
			require.Regexp(t, `^team/`+d.Name+`/(latest|lock|runs)/`, key)
		}
		b.cli(t, 0, "install", "--until", last)
		b.cli(t, 0, "destroy", "--yes")
		a.cli(t, 0, "install", "--until", last)
		a.cli(t, 0, "destroy", "--yes")
	})
}
