package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// machine is one on which somebody works on a deployment: it has a data folder of its own.
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

// owned is what status says of whose a deployment is, and where.
type owned struct {
	status
	Run       string
	Owners    []struct{ Name string }
	Elsewhere bool
	Engine    struct{ By, Run string }
}

func (m machine) status(t *testing.T) (s owned) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(m.cli(t, 0, "status", "--output", "json").out), &s))
	return s
}

// TestTwoPeopleOnOneEngine take the same name: the deployment of the one is left alone by the
// other, until they work on it together.
func TestTwoPeopleOnOneEngine(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-owners")
	on := func(env ...string) machine { return machine{d, write(t, configured), env} }
	as := func(owner, data string) machine {
		return on("SLIPWAY_OWNER="+owner, "SLIPWAY_DATA_DIR="+data)
	}
	home := t.TempDir()
	alice, bob := as("alice@laptop", home), as("bob@desk", t.TempDir())
	const last = "infrastructure/cluster"
	ci := on("SLIPWAY_OWNER=", "CI=true", "SLIPWAY_DATA_DIR="+t.TempDir())
	ci.cli(t, 0, "destroy", "--yes") // whatever an earlier run of the tests left
	alice.cli(t, 0, "install", "--until", last)
	runs := alice.cli(t, 0, "runs").out

	t.Run("the other one is refused, and changes nothing", func(t *testing.T) {
		for _, command := range [][]string{{"install", "--until", last}, {"install"}, {"destroy", "--yes"}, {"plan", "--workflow", "destroy"}} {
			r := bob.cli(t, 2, command[0], command[1:]...)
			require.Contains(t, r.err, "DEP-014")
			require.Contains(t, r.err, "deployment e2e-owners on this engine is alice@laptop's, since ")
			require.Contains(t, r.err, "its last run was install ")
			require.Contains(t, r.err, "you are bob@desk; nothing was changed")
			require.Contains(t, r.err, "--join")
		}
		m := d
		m.Flags = []string{"--owner", "carol"}
		r := m.call(t, "destroy")
		require.Equal(t, 2, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "you are carol")
		require.Equal(t, runs, bob.cli(t, 0, "runs").out)
		s := bob.status(t)
		require.Len(t, s.Owners, 1)
		require.Equal(t, "alice@laptop", s.Owners[0].Name)
		require.Contains(t, bob.cli(t, 0, "status").out, "it is of alice@laptop, since ")
		bob.cli(t, 0, "toolchain", "--", "kubectl", "get", "nodes")
	})

	t.Run("a machine is known by its copy, whatever it is called", func(t *testing.T) {
		as("alice@dhcp-17", home).cli(t, 0, "install", "--until", last)
		require.Contains(t, as("alice@dhcp-17", t.TempDir()).cli(t, 2, "install", "--until", last).err, "DEP-014")
		ci.cli(t, 0, "install", "--until", last)
		require.Len(t, alice.status(t).Owners, 1)
	})

	t.Run("together, once they say so", func(t *testing.T) {
		bob.cli(t, 0, "install", "--until", last, "--join")
		require.Len(t, bob.status(t).Owners, 2)
		alice.cli(t, 0, "install", "--until", last)
		bob.cli(t, 0, "destroy", "--yes")
		as("carol", t.TempDir()).cli(t, 0, "destroy", "--yes") // the name is free
	})
}

// TestTwoEnginesOnOneBucket: the cluster is on one of them, and the other one leaves the state
// alone, until it is made the deployment's.
func TestTwoEnginesOnOneBucket(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-engines")
	server := startS3(t)
	config := server.configuration(t, ageKey(t))
	on := func(engine string) machine {
		return machine{d, config, []string{"_EXPERIMENTAL_DAGGER_RUNNER_HOST=" + engine, "SLIPWAY_DATA_DIR=" + t.TempDir(), "E2E_ID=" + s3ID, "E2E_SECRET=" + s3Secret}}
	}
	a, b := on(os.Getenv("_EXPERIMENTAL_DAGGER_RUNNER_HOST")), on(secondEngine(t).address)
	const last = "infrastructure/cluster"
	uid := func(t *testing.T, m machine) string {
		t.Helper()
		return m.cli(t, 0, "toolchain", "--", "kubectl", "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}").out
	}
	refused := func(t *testing.T, m machine, run string) {
		t.Helper()
		state := func() map[string]string { // a preflight begins while the owner is looked up, and leaves its log
			all := contents(t, server.Objects())
			maps.DeleteFunc(all, func(key, _ string) bool { return strings.Contains(key, "/steps/infrastructure.preflight/") })
			return all
		}
		before, runs := state(), m.cli(t, 0, "runs").out
		for _, command := range [][]string{{"install", "--until", last}, {"destroy", "--yes"}, {"plan"}, {"toolchain", "--", "true"}} {
			r := m.cli(t, 2, command[0], command[1:]...)
			require.Contains(t, r.err, "DEP-015")
			require.Contains(t, r.err, "the cluster of deployment e2e-engines is on another engine, that of run "+run+" of ")
		}
		require.Equal(t, before, state(), "nothing of the state was touched")
		require.Equal(t, runs, m.cli(t, 0, "runs").out)
		require.True(t, m.status(t).Elsewhere)
	}
	a.cli(t, 0, "destroy", "--yes") // whatever an earlier run of the tests left on the engine
	a.cli(t, 0, "install", "--until", last)
	first, cluster := a.status(t), uid(t, a)
	require.False(t, first.Elsewhere)

	t.Run("the other engine is refused", func(t *testing.T) {
		refused(t, b, first.Run)
		require.Equal(t, cluster, uid(t, a))
		require.Regexp(t, `(?m)^\s*infrastructure/terraform\s+reused`, a.cli(t, 0, "install", "--until", last).out)
	})

	t.Run("until it is made the deployment's", func(t *testing.T) {
		r := b.cli(t, 0, "install", "--until", last, "--here")
		require.Contains(t, r.out, "warning: deployment e2e-engines is this engine's from now on; the cluster that run "+first.Run+" of ")
		require.NotContains(t, r.out, "thrown away")
		require.NotEqual(t, cluster, uid(t, b))
		refused(t, a, b.status(t).Engine.Run)
		require.NotContains(t, b.cli(t, 0, "install", "--until", last).out, "warning: deployment", "once is enough")
	})

	t.Run("a destroy frees the name for both", func(t *testing.T) {
		b.cli(t, 0, "destroy", "--yes")
		for _, key := range server.keys(t) {
			require.Regexp(t, `^team/`+d.Name+`/(latest|lock|runs)/`, key)
		}
		a.cli(t, 0, "install", "--until", last)
		require.Equal(t, cluster, uid(t, a), "what was left here was not touched")
		a.cli(t, 0, "destroy", "--yes")
	})

	t.Run("a key that was made on an engine that is gone", func(t *testing.T) {
		a, b := a, b
		a.config = server.configuration(t, "")
		b.config = a.config
		a.cli(t, 0, "install", "--until", last)
		require.Contains(t, b.cli(t, 2, "install", "--until", last).err, "DEP-015")
		r := b.cli(t, 2, "install", "--until", last, "--here")
		require.Contains(t, r.err, "SEC-002")
		require.Contains(t, r.err, " --here removes the deployment, all its data included")
		require.Contains(t, b.cli(t, 2, "destroy", "--yes").err, "DEP-015", "it was not taken from the one that can")
		require.Regexp(t, `(?m)^\s*infrastructure/terraform\s+reused`, a.cli(t, 0, "install", "--until", last).out)
		require.Contains(t, b.cli(t, 0, "destroy", "--yes", "--here").out, "warning: deployment e2e-engines is this engine's from now on")
		for _, key := range server.keys(t) {
			require.Regexp(t, `^team/`+d.Name+`/(latest|lock|runs)/`, key)
		}
		b.cli(t, 0, "install", "--until", last)
		b.cli(t, 0, "destroy", "--yes")
		a.cli(t, 0, "install", "--until", last)
		a.cli(t, 0, "destroy", "--yes")
	})
}
