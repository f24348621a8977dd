//go:build unix

package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers/keeper"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/progress"
)

// fakeCLI puts a script in the place of the dagger CLI, which the session's own
// program runs.
func fakeCLI(t *testing.T, script string) {
	t.Helper()
	cli := filepath.Join(t.TempDir(), "dagger")
	require.NoError(t, os.WriteFile(cli, []byte("#!/bin/sh\n"+script), 0o755))
	for name, value := range map[string]string{envCLI: cli, envShield: "", envSession: "", envRunner: ""} {
		t.Setenv(name, value)
	}
}

func TestASessionIsOpenedToBeLent(t *testing.T) {
	fakeCLI(t, `echo "connected: $*" >&2
echo '{"port":4711,"session_token":"secret","host":"127.0.0.1:4711"}'
read -r _
echo ended >&2
`)
	var log bytes.Buffer
	s, err := openSession(t.Context(), &log)
	require.NoError(t, err)
	require.Equal(t, keeper.Session{Port: 4711, Token: "secret"}, s.Session)
	s.end()
	require.Equal(t, "connected: session --label dagger.io/sdk.name:go\nended\n", log.String())

	t.Setenv(envToken, "")
	require.NoError(t, enter(s.Session))
	require.Equal(t, []string{"4711", "secret"}, []string{os.Getenv(envSession), os.Getenv(envToken)})
}

func TestASessionThatDoesNotOpen(t *testing.T) {
	for script, says := range map[string]string{
		"echo no engine >&2; exit 1":    "read what the dagger CLI says of its session: EOF",
		"echo 'port 4711'; read -r _":   "read what the dagger CLI says of its session: invalid character 'p'",
		"echo '{\"port\":4711'; exit 0": "unexpected end of JSON input",
	} {
		fakeCLI(t, script)
		_, err := openSession(t.Context(), io.Discard)
		require.ErrorIs(t, err, &fault.Fault{Code: "ENG-008"}, script)
		require.ErrorContains(t, err, says)
	}
	t.Setenv(envCLI, "")
	_, err := openSession(t.Context(), io.Discard)
	require.ErrorContains(t, err, "does not name the dagger CLI")
}

// keepingTarget is one whose cluster is to be kept, with a cache of its own.
func keepingTarget(t *testing.T, args ...string) *target {
	t.Helper()
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	t.Setenv(envSession, "")
	set := pflag.NewFlagSet("install", pflag.ContinueOnError)
	tt := targetFlags(set)
	set.Bool("keep-cluster", false, "")
	platformFlags(set, tt)
	require.NoError(t, set.Parse(args))
	tt.cfg, tt.keep = &config.Config{Global: config.Global{Name: "dev"}}, keepRun
	return tt
}

func TestWhatTheProcessInTheBackgroundIsGiven(t *testing.T) {
	tt := keepingTarget(t, "--keep-cluster", "-c", "my config.yaml", "--platform", "p", "--name=x", "-v")
	require.Equal(t, []string{"cluster", "--lend", "--config=my config.yaml", "--name=x", "--verbose=true"}, tt.lenderArgs())
}

func TestAProcessInTheBackgroundThatDies(t *testing.T) {
	silent := streams{err: progress.Open(io.Discard, progress.Options{})}
	t.Setenv("SLIPWAY_TEST_LENDER", "panic: what a pity")
	_, err := keepingTarget(t).background(t.Context(), silent)
	require.ErrorIs(t, err, &fault.Fault{Code: "DEP-006"})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.ErrorContains(t, err, "exit status 9: panic: what a pity")

	var told bytes.Buffer
	tellFault(&told, &fault.Fault{Code: "DEP-003", Class: fault.Preflight, Op: "run the cluster", Err: errors.New("port 6443 is taken")})
	t.Setenv("SLIPWAY_TEST_LENDER", told.String())
	_, err = keepingTarget(t).background(t.Context(), silent)
	require.ErrorIs(t, err, &fault.Fault{Code: "DEP-003"})
	require.EqualError(t, err, "keep the cluster running in the background: run the cluster: port 6443 is taken")
}

func TestInsideASessionNothingIsKept(t *testing.T) {
	tt := keepingTarget(t)
	t.Setenv(envSession, "4711")
	_, _, err := tt.session(t.Context(), streams{err: progress.Open(io.Discard, progress.Options{})})
	require.ErrorContains(t, err, "DAGGER_SESSION_PORT names a session, and nothing outlives that")
}

func TestAClusterThatNobodyKeeps(t *testing.T) {
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	code, out, errs := slipway("cluster", "--stop", "--name", "dev")
	require.Zero(t, code, errs)
	require.Equal(t, "the cluster of deployment dev does not run\n", out)
}

func TestACommandJoinsAndLeavesASession(t *testing.T) {
	tt := keepingTarget(t)
	socket, log, err := keeperFiles("dev")
	require.NoError(t, err)
	other, _, err := keeperFiles("prod")
	require.NoError(t, err)
	require.NotEqual(t, socket, other)
	require.Equal(t, "dev.log", filepath.Base(log))

	k, err := keeper.Keep(t.Context(), socket, keeper.Kept{Deployment: "dev", Session: keeper.Session{Port: 4711, Token: "secret"}, Node: "n"}, new(keeper.Log), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, k.Close()) }()
	t.Setenv(envToken, "")
	tt.work = "install"
	leave, err := tt.join(t.Context(), streams{err: progress.Open(io.Discard, progress.Options{})}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "n", tt.joined.Node)
	require.Equal(t, "secret", os.Getenv(envToken))
	require.Contains(t, k.Working(), "(install)")
	leave()
	require.Eventually(t, func() bool { return k.Working() == "" }, 10*time.Second, time.Millisecond)

	t.Setenv(envSession, "")
	_, err = tt.open(t.Context(), io.Discard)
	require.ErrorIs(t, err, &fault.Fault{Code: "DEP-004"})
}
