package lock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
)

const holderVariable = "SLIPWAY_TEST_LOCK"

var quick = lock.Options{Beat: 100 * time.Millisecond, TTL: 2 * time.Second}

// holder is another process that holds the lock of a directory.
type holder struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// TestHolder is the other process.
func TestHolder(t *testing.T) {
	dir := os.Getenv(holderVariable)
	if dir == "" {
		return // it is none
	}
	s, err := store.Open(t.Context(), "file://"+dir, store.Options{})
	require.NoError(t, err)
	ctx, lease, err := lock.New(s, quick).Acquire(t.Context(), alice)
	require.NoError(t, err)
	fmt.Println("held")
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
	fmt.Println(lease.Release(t.Context()))
}

func hold(t *testing.T, dir string) *holder {
	t.Helper()
	h := &holder{cmd: exec.Command(os.Args[0], "-test.run=^TestHolder$")}
	h.cmd.Env = append(os.Environ(), holderVariable+"="+dir)
	// In a session of its own: a process group that loses its last parent outside is
	// sent SIGCONT, which would wake a holder that a test has stopped.
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := h.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, h.cmd.Start())
	h.lines = bufio.NewScanner(out)
	require.Equal(t, "held", h.line(t))
	return h
}

func (h *holder) line(t *testing.T) string {
	t.Helper()
	require.True(t, h.lines.Scan(), "the other process says nothing")
	return h.lines.Text()
}

// takeOver tries until the lock can be had.
func takeOver(t *testing.T, l *lock.Lock) (context.Context, *lock.Lease) {
	t.Helper()
	_, _, err := l.Acquire(t.Context(), bob)
	requireHeld(t, err, alice)
	for start := time.Now(); ; {
		ctx, lease, err := l.Acquire(t.Context(), bob)
		if err == nil {
			return ctx, lease
		}
		require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeHeld})
		require.Less(t, time.Since(start), time.Minute)
		time.Sleep(quick.Beat)
	}
}

func TestAcquire_ofAKilledProcess(t *testing.T) {
	dir := t.TempDir()
	h := hold(t, dir)
	require.NoError(t, h.cmd.Process.Kill())
	require.Error(t, h.cmd.Wait())
	s, err := store.Open(t.Context(), "file://"+dir, store.Options{})
	require.NoError(t, err)
	ctx, lease := takeOver(t, lock.New(s, quick))
	require.Equal(t, alice, lease.Record().After.Holder)
	require.NoError(t, lease.Check(ctx))
	require.NoError(t, lease.Release(ctx))
}

// TestAcquire_ofAPausedProcess: a holder that wakes up after it was taken over
// learns that it lost.
func TestAcquire_ofAPausedProcess(t *testing.T) {
	dir := t.TempDir()
	h := hold(t, dir)
	require.NoError(t, h.cmd.Process.Signal(syscall.SIGSTOP))
	s, err := store.Open(t.Context(), "file://"+dir, store.Options{})
	require.NoError(t, err)
	ctx, lease := takeOver(t, lock.New(s, quick))
	require.NoError(t, h.cmd.Process.Signal(syscall.SIGCONT))
	cause, release := h.line(t), h.line(t)
	require.Regexp(t, "^keep the deployment's lock: (no heartbeat could be written within 2s|bob@laptop .* took it over at .*, because it had expired)", cause)
	require.Equal(t, cause, release)
	require.NoError(t, h.cmd.Wait())
	require.NoError(t, lease.Check(ctx))
	require.NoError(t, lease.Release(ctx))
}

func TestUnlock_ofAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	h := hold(t, dir)
	s, err := store.Open(t.Context(), "file://"+dir, store.Options{})
	require.NoError(t, err)
	l := lock.New(s, quick)
	_, err = l.Unlock(t.Context(), bob, "in the way", true)
	require.NoError(t, err)
	require.Contains(t, h.line(t), "took it away")
	require.Contains(t, h.line(t), "in the way")
	require.NoError(t, h.cmd.Wait())
	current, err := l.Current(t.Context())
	require.NoError(t, err)
	require.Nil(t, current)
}

// TestAcquire_twoProcesses: of two that start at once, one works.
func TestAcquire_twoProcesses(t *testing.T) {
	dir := t.TempDir()
	h := hold(t, dir)
	other := exec.Command(os.Args[0], "-test.run=^TestHolder$")
	other.Env = append(os.Environ(), holderVariable+"="+dir)
	out, err := other.CombinedOutput()
	_, failed := errors.AsType[*exec.ExitError](err)
	require.True(t, failed, "%v", err)
	require.Contains(t, string(out), "alice@build-7 (install, run 20260102-030405-a1b2c3) has had the lock since")
	require.NoError(t, h.cmd.Process.Kill())
	require.Error(t, h.cmd.Wait())
}
