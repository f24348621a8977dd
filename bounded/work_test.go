package bounded

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWorkThatTakesTooLong is abandoned, and one that panics has failed.
func TestWorkThatTakesTooLong(t *testing.T) {
	short := Limits{Time: 50 * time.Millisecond, Memory: 1 << 40}
	value, err := Work(t.Context(), short, func() (int, error) { return 1, nil })
	require.NoError(t, err)
	require.Equal(t, 1, value)
	_, err = Work(t.Context(), short, func() (int, error) {
		time.Sleep(200 * time.Millisecond)
		return 1, nil
	})
	require.ErrorIs(t, err, ErrAbandoned)
	_, err = Work(t.Context(), short, func() (int, error) { panic("a template's function") })
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
