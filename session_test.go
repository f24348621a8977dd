//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test's own program stand for Slipway where the SDK calls it
// in place of the dagger CLI.
func TestMain(m *testing.M) {
	if isSession(os.Args[1:]) {
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
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

	out, err := exec.Command(os.Getenv(envCLI), "session", "--label", "x").Output()
	require.NoError(t, err)
	f := strings.Fields(string(out))
	require.Equal(t, f[0], f[1], "it leads its group: %s", out)
	require.Equal(t, []string{"session", "--label", "x", "[" + cli + "]", "[]"}, f[2:])
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
