package kube

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

// late is a context that ends a moment after its deadline, as those do whose timer
// is late on a busy machine.
type late struct {
	context.Context
	deadline time.Time
	done     chan struct{}
}

func newLate(t *testing.T, after time.Duration) *late {
	l := &late{Context: t.Context(), deadline: time.Now().Add(after), done: make(chan struct{})}
	time.AfterFunc(after+time.Millisecond, func() { close(l.done) })
	return l
}

func (l *late) Deadline() (time.Time, bool) { return l.deadline, true }
func (l *late) Done() <-chan struct{}       { return l.done }
func (l *late) Err() error {
	select {
	case <-l.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// errLimited is what client-go's rate limiter says then.
var errLimited = errors.New("rate: Wait(n=1) would exceed context deadline")

// TestADeadlineThatHasJustPassed: what is told is what was seen before, and that
// time ran out.
func TestADeadlineThatHasJustPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := new(Client).WaitFor(newLate(t, time.Second), "the API", time.Second, func(context.Context) (bool, string, error) {
			if calls++; calls == 1 {
				return false, "connection refused", nil
			}
			return false, errLimited.Error(), nil
		})
		require.ErrorIs(t, err, &fault.Fault{Code: CodeWait})
		require.ErrorContains(t, err, "last seen: connection refused")
		require.Equal(t, 2, calls)
	})
	synctest.Test(t, func(t *testing.T) {
		err := new(Client).Retry(newLate(t, time.Second), "apply x", func(context.Context) error {
			time.Sleep(time.Second)
			return errLimited
		})
		require.ErrorIs(t, err, &fault.Fault{Code: CodeUnreachable})
		require.Equal(t, fault.Timeout, fault.ClassOf(err))
	})
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := &Client{outage: time.Minute}
		err := c.Retry(newLate(t, 2*time.Second), "apply x", func(context.Context) error {
			if calls++; calls == 1 {
				return syscall.ECONNREFUSED
			}
			time.Sleep(2 * time.Second)
			return errLimited
		})
		require.ErrorContains(t, err, "last seen: connection refused")
		require.NotErrorIs(t, err, errLimited)
	})
}

// TestACallAfterTheEnd is not made, and does not accuse the API server.
func TestACallAfterTheEnd(t *testing.T) {
	up := errors.New("the step's time is up")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 0, up)
	defer cancel()
	err := new(Client).Retry(ctx, "apply x", func(context.Context) error {
		t.Error("it was made")
		return nil
	})
	require.EqualError(t, err, "apply x: the step's time is up")
	require.ErrorIs(t, err, up)
}
