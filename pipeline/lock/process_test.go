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

	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
)

const holderVariable = "SLIPWAY_TEST_LOCK"

// On a machine that is busy a process may stand still for seconds. So no lease of
// these tests ends by itself, and who takes one over believes that nothing works for its
// holder any more.
var (
	quick = lock.Options{Beat: 100 * time.Millisecond, TTL: 10 * time.Minute}
	sure  = lock.Options{Beat: quick.Beat, TTL: quick.TTL, Gone: func(lock.Holder) (func(), bool) { return func() {}, true }}
)

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
	t.Cleanup(func() { // of a test that failed, it may stand still
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
	})
	h.lines = bufio.NewScanner(out)
	require.Equal(t, "held", h.line(t))
	return h
}

func (h *holder) line(t *testing.T) string {
	t.Helper()
	require.True(t, h.lines.Scan(), "the other process printed nothing")
	return h.lines.Text()
}

// takeOver takes the lock of a directory away from alice, who holds it and gives no
// sign of life any more.
func takeOver(t *testing.T, dir string) (context.Context, *lock.Lease) {
	t.Helper()
	s, err := store.Open(t.Context(), "file://"+dir, store.Options{})
	require.NoError(t, err)
	_, _, err = lock.New(s, quick).Acquire(t.Context(), bob)
	requireHeld(t, err, alice)
	ctx, lease, err := lock.New(s, sure).Acquire(t.Context(), bob)
	require.NoError(t, err)
	require.Equal(t, alice, lease.Record().After.Holder)
	return ctx, lease
}

func TestAcquire_ofAKilledProcess(t *testing.T) {
	dir := t.TempDir()
	h := hold(t, dir)
	require.NoError(t, h.cmd.Process.Kill())
	require.Error(t, h.cmd.Wait())
	ctx, lease := takeOver(t, dir)
	require.NoError(t, lease.Check(ctx))
	require.NoError(t, lease.Release(ctx))
}

// TestAcquire_ofAPausedProcess: a holder that wakes up after it was taken over
// learns that it lost.
func TestAcquire_ofAPausedProcess(t *testing.T) {
	dir := t.TempDir()
	h := hold(t, dir)
	require.NoError(t, h.cmd.Process.Signal(syscall.SIGSTOP))
	ctx, lease := takeOver(t, dir)
	require.NoError(t, h.cmd.Process.Signal(syscall.SIGCONT))
	cause, release := h.line(t), h.line(t)
	require.Regexp(t, "^hold the deployment's lock: bob@laptop .* took it over at .*, because every process of it has ended", cause)
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
	_, err = l.Unlock(t.Context(), bob, true)
	require.NoError(t, err)
	require.Contains(t, h.line(t), "took it away")
	require.Contains(t, h.line(t), "took it away", "its release says so, too")
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
