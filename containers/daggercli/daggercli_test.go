//go:build unix

package daggercli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test's own program stand for Slipway where the SDK calls it
// in place of the dagger CLI.
func TestMain(m *testing.M) {
	if cli := os.Getenv("SLIPWAY_TEST_ATTEND"); cli != "" {
		code, err := attend(cli, nil, 100*time.Millisecond, os.Stdin, os.Stdout, os.Stderr)
		fmt.Fprintln(os.Stderr, "attended:", code, err)
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == "session" && Shielded() {
		os.Exit(Run(os.Args[1:], os.Stderr))
	}
	os.Exit(m.Run())
}

// A Ctrl-C of the terminal reaches a process group: the CLI must be in another one.
func TestTheSessionHasAProcessGroupOfItsOwn(t *testing.T) {
	cli := filepath.Join(t.TempDir(), "dagger")
	require.NoError(t, os.WriteFile(cli, []byte("#!/bin/sh\nread -r _ _ _ _ group _ </proc/$$/stat\necho \"$$ $group $* [$"+EnvCLI+"] [$"+envShield+"]\"\n"), 0o755))
	t.Setenv(EnvSession, "")
	t.Setenv(envShield, "")
	t.Setenv(EnvCLI, cli)
	require.NoError(t, Shield())
	require.NoError(t, Shield(), "once is enough")
	require.Equal(t, cli, os.Getenv(envShield))

	cmd := exec.Command(os.Getenv(EnvCLI), "session", "--label", "x")
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

func TestInsideASessionNothingIsShielded(t *testing.T) {
	t.Setenv(EnvCLI, "/somewhere/dagger")
	t.Setenv(EnvSession, "1234")
	require.NoError(t, Shield())
	require.Equal(t, "/somewhere/dagger", os.Getenv(EnvCLI))
}

func TestACLIThatIsNotThereIsNamed(t *testing.T) {
	t.Setenv(envShield, "/nowhere/dagger")
	t.Setenv(EnvCLI, "")
	cmd := exec.Command(os.Args[0], "session")
	var errs strings.Builder
	cmd.Stderr, cmd.Stdout = &errs, io.Discard
	require.Error(t, cmd.Run())
	require.Contains(t, errs.String(), "/nowhere/dagger")
	require.Equal(t, 3, cmd.ProcessState.ExitCode())
}
