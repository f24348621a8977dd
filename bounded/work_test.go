package bounded

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWorkAfterRendering is bounded until it has rendered, and learns that nobody waits for what it
// rendered too late.
func TestWorkAfterRendering(t *testing.T) {
	short := Limits{Time: 50 * time.Millisecond, Memory: 1 << 40}
	value, err := Begin(t.Context(), short, func(rendered func() error) (int, error) {
		err := errors.Join(rendered(), rendered())
		time.Sleep(200 * time.Millisecond)
		return 1, err
	})
	require.NoError(t, err)
	require.Equal(t, 1, value)

	late := make(chan error)
	_, err = Begin(t.Context(), short, func(rendered func() error) (int, error) {
		time.Sleep(200 * time.Millisecond)
		late <- rendered()
		return 1, nil
	})
	require.ErrorIs(t, err, ErrAbandoned)
	require.ErrorIs(t, <-late, ErrDone)

	_, err = Begin(t.Context(), short, func(func() error) (int, error) { panic("a template's function") })
	require.EqualError(t, err, "panic: a template's function")
}

// TestWorkThatCallsItself: when its stack is full, Go ends the program.
func TestWorkThatCallsItself(t *testing.T) {
	var stop atomic.Bool
	defer stop.Store(true) // what is abandoned goes on
	_, err := Work(t.Context(), Limits{Time: time.Minute, Memory: 1 << 40}, func() (int, error) { return deeper(&stop, 1), nil })
	require.ErrorIs(t, err, ErrAbandoned)
	require.ErrorContains(t, err, "it calls itself without end")
}

// deeper takes a MiB of stack in some milliseconds.
func deeper(stop *atomic.Bool, n int) int {
	var frame [1024]byte
	if n%1024 == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	if stop.Load() {
		return n
	}
	frame[n%len(frame)] = 1
	return deeper(stop, n+1) + int(frame[n%7])
}
