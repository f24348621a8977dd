package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

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
	case "starter":
		os.Exit(starter())
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

// reader is a process that says what it was sent. Its output is file 3 of starter.
func reader(out *os.File) *exec.Cmd {
	cmd := exec.Command("sh", "-c", `if read -r line; then echo "got $line"; else echo got nothing; fi`)
	cmd.Stdout = out
	return cmd
}

// starter begins a reader and goes no further than noting its pid.
func starter() int {
	_, err := begin(reader(os.NewFile(3, "out")), []byte("setup\n"), func(int) error {
		fmt.Println("noting")
		select {}
	})
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// TestAStarterThatIsKilledLeavesNoEngine kills the starter while the pid is not
// on record yet.
func TestAStarterThatIsKilledLeavesNoEngine(t *testing.T) {
	out, write, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	cmd := part(t, "starter")
	cmd.ExtraFiles = []*os.File{write}
	cmd.Stderr = os.Stderr
	says, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	line := make([]byte, len("noting\n"))
	_, err = io.ReadFull(says, line)
	require.NoError(t, err)

	require.NoError(t, out.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
	_, err = out.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "nothing was sent yet, and the reader still waits")

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.NoError(t, out.SetReadDeadline(time.Now().Add(20*time.Second)))
	output, err := io.ReadAll(out) // to the end: the reader has ended
	require.NoError(t, err)
	require.Equal(t, "got nothing\n", string(output))
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

func TestBeginSendsTheSetup(t *testing.T) {
	out, write, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	noted := 0
	p, err := begin(reader(write), []byte("setup\n"), func(pid int) error { noted = pid; return nil })
	require.NoError(t, err)
	require.NoError(t, write.Close())
	output, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Equal(t, "got setup\n", string(output))
	<-p.ended
	require.NoError(t, p.err)
	require.Equal(t, p.cmd.Process.Pid, noted)
	require.NoError(t, p.kill(), "it has ended already")
}

func TestBeginThatFailsLeavesNoProcess(t *testing.T) {
	full := errors.New("no space left")
	var noted int
	_, err := begin(exec.Command("sleep", "60"), nil, func(pid int) error { noted = pid; return full })
	require.ErrorIs(t, err, full)
	require.ErrorIs(t, syscall.Kill(noted, 0), syscall.ESRCH, "ended and collected")

	_, err = begin(exec.Command("/nowhere/engine"), nil, func(int) error { panic("there is no process") })
	require.ErrorIs(t, err, fs.ErrNotExist)
}
