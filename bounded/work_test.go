package bounded

import (
	"errors"
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
