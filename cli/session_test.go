//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/deployments"
)

// TestMain lets the test's own program stand for Slipway where the SDK calls it
// in place of the dagger CLI.
func TestMain(m *testing.M) {
	if cli := os.Getenv("SLIPWAY_TEST_ATTEND"); cli != "" {
		code, err := attend(cli, nil, 100*time.Millisecond, os.Stdin, os.Stdout, os.Stderr)
		fmt.Fprintln(os.Stderr, "attended:", code, err)
		os.Exit(code)
	}
	if os.Getenv("SLIPWAY_TEST_LENDER") != "" {
		fmt.Fprintln(os.Stderr, os.Getenv("SLIPWAY_TEST_LENDER"))
		os.Exit(9)
	}
	if isSession(os.Args[1:]) {
		os.Exit(Run(context.Background(), "dev", os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(withoutDeployments(m))
}

// withoutDeployments runs the tests without the deployments of who runs them.
func withoutDeployments(m *testing.M) int {
	dir, err := os.MkdirTemp("", "slipway-test-")
	if err == nil {
		err = errors.Join(os.Setenv(deployments.EnvFolder, dir), os.Unsetenv(envDeployment))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return m.Run()
}

// A Ctrl-C of the terminal reaches a process group: the CLI must be in another one.
func TestTheSessionHasAProcessGroupOfItsOwn(t *testing.T) {
	cli := filepath.Join(t.TempDir(), "dagger")
	require.NoError(t, os.WriteFile(cli, []byte("#!/bin/sh\nread -r _ _ _ _ group _ </proc/$$/stat\necho \"$$ $group $* [$"+envCLI+"] [$"+envShield+"]\"\n"), 0o755))
	t.Setenv(envSession, "")
	t.Setenv(envShield, "")
	t.Setenv(envCLI, cli)
	require.NoError(t, shield())
	require.NoError(t, shield(), "once is enough")
	require.Equal(t, cli, os.Getenv(envShield))

	cmd := exec.Command(os.Getenv(envCLI), "session", "--label", "x")
	out, err := cmd.Output()
	require.NoError(t, err)
	f := strings.Fields(string(out))
	require.Equal(t, fmt.Sprint(cmd.Process.Pid), f[1], "not the test's group: %s", out)
	require.Equal(t, []string{"session", "--label", "x", "[" + cli + "]", "[]"}, f[2:])
}

// The CLI of an engine that was killed does not end by itself.
func TestASessionWhoseEngineIsGoneEnds(t *testing.T) {
	cli := filepath.Join(t.TempDir(), "dagger")
	require.NoError(t, os.WriteFile(cli, []byte("#!/bin/sh\nread -r line\necho \"input: $line\"\nexec sleep 600\n"), 0o755))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SLIPWAY_TEST_ATTEND="+cli)
	cmd.Stdin = strings.NewReader("x\n")
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.Error(t, cmd.Run())
	require.Equal(t, "input: x\n", out.String())
	require.Contains(t, errs.String(), "did not end within 100ms")
	require.Contains(t, errs.String(), "attended: 1 <nil>")
}

func TestAnEngineThatIsNotThereIsNotWaitedForLong(t *testing.T) {
	t.Setenv(envSession, "")
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
	t.Setenv(envSession, "1234")
	require.NoError(t, replies(t.Context(), "unix:///nowhere"), "a session is there")
}

func TestInsideASessionNothingIsShielded(t *testing.T) {
	t.Setenv(envCLI, "/somewhere/dagger")
	t.Setenv(envSession, "1234")
	require.NoError(t, shield())
	require.Equal(t, "/somewhere/dagger", os.Getenv(envCLI))
}

func TestACLIThatIsNotThereIsNamed(t *testing.T) {
	t.Setenv(envShield, "/nowhere/dagger")
	t.Setenv(envCLI, "")
	cmd := exec.Command(os.Args[0], "session")
	var errs strings.Builder
	cmd.Stderr, cmd.Stdout = &errs, io.Discard
	require.Error(t, cmd.Run())
	require.Contains(t, errs.String(), "/nowhere/dagger")
	require.Equal(t, 3, cmd.ProcessState.ExitCode())
}
