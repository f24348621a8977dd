//go:build unix

package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/background"
	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/progress"
)

// TestMain lets the test's own program stand for Slipway in the background, and for
// the dagger CLI.
func TestMain(m *testing.M) {
	if os.Getenv("SLIPWAY_TEST_BACKGROUND") != "" {
		said := os.Getenv("SLIPWAY_TEST_BACKGROUND")
		if said == "args" {
			said = strings.Join(os.Args[1:], " ")
		}
		fmt.Fprintln(os.Stderr, said)
		os.Exit(9)
	}
	if len(os.Args) > 1 && os.Args[1] == "session" && daggercli.Shielded() {
		os.Exit(daggercli.Run(os.Args[1:], os.Stderr))
	}
	os.Exit(m.Run())
}

// background is a session in which a cluster is to run on, with a cache of its own.
func inBackground(t *testing.T) *Session {
	t.Helper()
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	t.Setenv(daggercli.EnvSession, "")
	return &Session{of: Options{Deployment: "dev", Lifetime: AfterRun}}
}

// fakeCLI puts a script in the place of the dagger CLI, which the session's own
// program runs.
func fakeCLI(t *testing.T, script string) {
	t.Helper()
	cli := filepath.Join(t.TempDir(), "dagger")
	require.NoError(t, os.WriteFile(cli, []byte("#!/bin/sh\n"+script), 0o755))
	for name, value := range map[string]string{daggercli.EnvCLI: cli, "SLIPWAY_DAGGER_CLI": "", daggercli.EnvSession: "", daggercli.EnvRunner: "", "DOCKER_HOST": ""} {
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
	require.Equal(t, background.Session{Port: 4711, Token: "secret"}, s.Session)
	s.end()
	require.Equal(t, "connected: session --label dagger.io/sdk.name:go --silent\nended\n", log.String())

	t.Setenv(daggercli.EnvToken, "")
	require.NoError(t, enter(s.Session))
	require.Equal(t, []string{"4711", "secret"}, []string{os.Getenv(daggercli.EnvSession), os.Getenv(daggercli.EnvToken)})
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
	t.Setenv(daggercli.EnvCLI, "")
	_, err := openSession(t.Context(), io.Discard)
	require.ErrorContains(t, err, "does not name the dagger CLI")
}

// TestASessionThatEndsUnderACommand is told as such.
func TestASessionThatEndsUnderACommand(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Setenv(daggercli.EnvSession, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	t.Setenv(daggercli.EnvToken, "secret")
	client, err := connect(t.Context(), io.Discard)
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	_, err = client.Version(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: containers.CodeSessionEnded})
}

func TestAProcessInTheBackgroundThatDies(t *testing.T) {
	silent := console.Streams{Err: progress.Open(io.Discard, progress.Options{})}
	t.Setenv("SLIPWAY_TEST_BACKGROUND", "panic: what a pity")
	_, err := inBackground(t).background(t.Context(), silent)
	require.ErrorIs(t, err, &fault.Fault{Code: "DEP-006"})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.ErrorContains(t, err, "exit status 9: panic: what a pity")

	var told bytes.Buffer
	containers.WriteFault(&told, &fault.Fault{Code: "DEP-003", Class: fault.Preflight, Op: "run the cluster", Err: errors.New("port 6443 is taken")})
	t.Setenv("SLIPWAY_TEST_BACKGROUND", told.String())
	_, err = inBackground(t).background(t.Context(), silent)
	require.ErrorIs(t, err, &fault.Fault{Code: "DEP-003"})
	require.EqualError(t, err, "start the background cluster: run the cluster: port 6443 is taken")
}

// TestAClusterOnNoPort: the process that keeps it is told, and tells others.
func TestAClusterOnNoPort(t *testing.T) {
	silent := console.Streams{Err: progress.Open(io.Discard, progress.Options{})}
	for unpublished, args := range map[bool]string{false: "cluster --lend --name=dev", true: "cluster --lend --unpublished --name=dev"} {
		t.Setenv("SLIPWAY_TEST_BACKGROUND", "args")
		s := inBackground(t)
		s.of.Unpublished, s.of.Args = unpublished, []string{"--name=dev"}
		_, err := s.background(t.Context(), silent)
		require.ErrorContains(t, err, "exit status 9: "+args)
	}
	socket, _, err := files("dev")
	require.NoError(t, err)
	k, err := background.Serve(t.Context(), socket, background.Info{Deployment: "dev", Unpublished: true}, new(background.Log), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, k.Close()) }()
	found, err := background.Find(t.Context(), socket)
	require.NoError(t, err)
	require.True(t, found.Unpublished)
}

func TestInsideASessionNothingIsKept(t *testing.T) {
	s := inBackground(t)
	t.Setenv(daggercli.EnvSession, "4711")
	_, err := Open(t.Context(), console.Streams{Err: progress.Open(io.Discard, progress.Options{})}, s.of)
	require.ErrorContains(t, err, "DAGGER_SESSION_PORT names a session, and nothing outlives that")
}

func TestACommandJoinsAndLeavesASession(t *testing.T) {
	s := inBackground(t)
	socket, log, err := files("dev")
	require.NoError(t, err)
	other, _, err := files("prod")
	require.NoError(t, err)
	require.NotEqual(t, socket, other)
	require.Equal(t, "dev.log", filepath.Base(log))
	t.Setenv("DOCKER_HOST", "ssh://builder")
	other, _, err = files("dev")
	require.NoError(t, err)
	require.NotEqual(t, socket, other, "it is on another engine")
	t.Setenv("DOCKER_HOST", "")

	k, err := background.Serve(t.Context(), socket, background.Info{Deployment: "dev", Session: background.Session{Port: 4711, Token: "secret"}, Node: "n"}, new(background.Log), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, k.Close()) }()
	t.Setenv(daggercli.EnvToken, "")
	s.of.Workflow = "install"
	leave, err := s.join(t.Context(), console.Streams{Err: progress.Open(io.Discard, progress.Options{})}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "n", s.Joined.Node)
	require.Equal(t, "secret", os.Getenv(daggercli.EnvToken))
	require.Contains(t, k.Working(), "(install)")
	leave()
	require.Eventually(t, func() bool { return k.Working() == "" }, 10*time.Second, time.Millisecond)
	require.Empty(t, os.Getenv(daggercli.EnvToken), "a command that opens another one is not within it")
	require.Empty(t, os.Getenv(daggercli.EnvSession))

	t.Setenv(daggercli.EnvSession, "")
	_, err = s.open(t.Context(), io.Discard)
	require.ErrorIs(t, err, &fault.Fault{Code: "DEP-004"})
}

func TestAnEngineThatIsNotThereIsNotWaitedForLong(t *testing.T) {
	t.Setenv(daggercli.EnvSession, "")
	dir := t.TempDir()
	socket := filepath.Join(dir, "engine.sock")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := replies(ctx, "unix://"+socket)
	require.ErrorContains(t, err, socket)
	require.ErrorContains(t, err, "last seen: dial unix")

	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	require.NoError(t, replies(t.Context(), "unix://"+socket))
	for _, other := range []string{"", "docker-container://engine", "kube-pod://engine"} {
		require.NoError(t, replies(t.Context(), other), "the dagger CLI knows")
	}
	t.Setenv(daggercli.EnvSession, "1234")
	require.NoError(t, replies(t.Context(), "unix:///nowhere"), "a session is there")
}
