package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// script is a shell script that runs, and everything that it has started, until the test ends.
func script(t *testing.T, text string) int {
	t.Helper()
	cmd := exec.Command("sh", "-c", text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// commands are those of a tree, sorted, with "!" before those that stand still.
func commands(t *testing.T, root int) (out []string) {
	t.Helper()
	all, err := trees(root)
	require.NoError(t, err)
	for _, p := range all {
		name := strings.Join(p.args, " ")
		if p.args[0] == "sh" {
			name = "sh"
		}
		if p.still() {
			name = "!" + name
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// TestFreeze: a whole tree stands still and goes on, and nothing else does.
func TestFreeze(t *testing.T) {
	root := script(t, "sleep 1001 & (sleep 1002 & sleep 1003 & wait) & wait")
	other := script(t, "sleep 1004 & wait")
	all := []string{"sh", "sh", "sleep 1001", "sleep 1002", "sleep 1003"}
	require.Eventually(t, func() bool {
		return slices.Equal(commands(t, root), all) && slices.Equal(commands(t, other), []string{"sh", "sleep 1004"})
	}, 10*time.Second, 10*time.Millisecond)

	f, err := freeze(root)
	require.NoError(t, err)
	require.Len(t, f, 5)
	require.Equal(t, []string{"!sh", "!sh", "!sleep 1001", "!sleep 1002", "!sleep 1003"}, commands(t, root))
	require.Equal(t, []string{"sh", "sleep 1004"}, commands(t, other))
	again, err := freeze(root)
	require.NoError(t, err)
	require.Empty(t, again, "it was not this one that stopped them")
	require.NoError(t, again.thaw())
	require.NotContains(t, commands(t, root), "sleep 1001")

	for _, p := range f {
		if slices.Equal(p.args, []string{"sleep", "1001"}) {
			require.NoError(t, p.signal(syscall.SIGKILL), "while it stands still")
		}
	}
	require.NoError(t, f.thaw())
	require.Eventually(t, func() bool {
		return slices.Equal(commands(t, root), []string{"sh", "sh", "sleep 1002", "sleep 1003"})
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, f.thaw(), "they go on already")

	none, err := freeze(1 << 30)
	require.NoError(t, err)
	require.Empty(t, none, "there is no such process")
}

// TestFreeze_whatForks: of a program that starts others all the time nothing goes on.
func TestFreeze_whatForks(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "counter")
	root := script(t, "n=0; while :; do n=$((n+1)); sleep 0.001; echo $n >"+counter+".new; mv "+counter+".new "+counter+"; done")
	count := func() int {
		text, _ := os.ReadFile(counter)
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
	require.Eventually(t, func() bool { return count() > 3 }, 10*time.Second, time.Millisecond)
	for range 10 {
		f, err := freeze(root)
		require.NoError(t, err)
		stood := count()
		time.Sleep(50 * time.Millisecond)
		require.Equal(t, stood, count())
		require.NoError(t, f.thaw())
		require.Eventually(t, func() bool { return count() > stood }, 10*time.Second, time.Millisecond)
	}
}

// TestSignal: one that has ended is not signalled, nor is what has its pid since.
func TestSignal(t *testing.T) {
	root := script(t, "sleep 1005 & wait")
	p, err := readProcess(procDir(root))
	require.NoError(t, err)
	require.NoError(t, p.signal(syscall.Signal(0)))
	p.began = "1"
	require.ErrorIs(t, p.signal(syscall.SIGKILL), os.ErrProcessDone)
	require.NotEmpty(t, commands(t, root))
	p.pid = 1 << 30
	require.ErrorIs(t, p.signal(syscall.SIGKILL), os.ErrProcessDone)
}
