package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAhead: the clock is set ahead, and back to what it would show, after a while or once whoever
// wanted it has gone.
func TestAhead(t *testing.T) {
	never, end := io.Pipe()
	t.Cleanup(func() { _ = end.Close() })
	for name, c := range map[string]struct {
		in   io.Reader
		d    time.Duration
		took time.Duration
	}{"after a while": {never, 200 * time.Millisecond, 200 * time.Millisecond}, "its parent has gone": {strings.NewReader(""), time.Hour, 0}} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			var set []time.Duration // from the beginning
			require.NoError(t, ahead(c.in, c.d, func(to time.Time) error {
				set = append(set, to.Round(0).Sub(began.Round(0))) // by the wall's clock
				return nil
			}))
			took := time.Since(began)
			require.GreaterOrEqual(t, took, c.took)
			require.Len(t, set, 2)
			require.InDelta(t, jump, set[0], float64(time.Second))
			require.InDelta(t, took, set[1], float64(100*time.Millisecond))
		})
	}
	failed := errors.New("not permitted")
	times := 0
	require.ErrorIs(t, ahead(never, 0, func(time.Time) error { times++; return failed }), failed)
	require.Equal(t, 1, times)
}
