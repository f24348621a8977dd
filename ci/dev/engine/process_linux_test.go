package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// envPart makes this test's binary one of the processes of a test.
const envPart = "SLIPWAY_TEST_PART"

func TestMain(m *testing.M) {
	switch os.Getenv(envPart) {
	case "":
		os.Exit(m.Run())
	case "inside":
		os.Exit(inside())
	}
	os.Exit(99)
}

// part is this test's binary in the part of another process.
func part(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), envPart+"="+name)
	return cmd
}

func TestInsideWithoutASetupEnds(t *testing.T) {
	for _, input := range []string{"", `{"Root":"/r`} {
		cmd := part(t, "inside")
		cmd.Stdin = strings.NewReader(input)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		require.Error(t, cmd.Run())
		require.Equal(t, 1, cmd.ProcessState.ExitCode())
		require.Contains(t, errs.String(), "read the engine's setup: ")
	}
}

func TestAnEngineIsEnded(t *testing.T) {
	cmd := sleeper(t, insideCommand)
	c := &control{stderr: io.Discard, paths: paths{network: "slipnone", socket: filepath.Join(t.TempDir(), "e.sock")}}
	require.NoError(t, c.end(record{PID: cmd.Process.Pid}))
	require.ErrorContains(t, cmd.Wait(), "terminated")
	require.NoError(t, c.end(record{PID: cmd.Process.Pid}), "it has ended already")
}
