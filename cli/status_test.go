package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/progress"
)

// TestFramesOnATerminal replace one another, and none is longer than the terminal.
func TestFramesOnATerminal(t *testing.T) {
	var out strings.Builder
	terminal := progress.Options{Live: true, Size: func() (int, int) { return 80, 3 }}
	require.NoError(t, frame(&out, terminal, "a\n"))
	require.NoError(t, frame(&out, terminal, "b\nc\nd\ne\n"))
	require.Equal(t, "\x1b[H\x1b[2Ja\n\x1b[H\x1b[2Jb\nc\n", out.String())
	out.Reset()
	require.NoError(t, frame(&out, progress.Options{}, "b\nc\nd\ne\n"))
	require.Equal(t, "\nb\nc\nd\ne\n", out.String(), "a log has all of it")
}

// TestLooksAreRepeated until they are done, one fails, or the command is interrupted.
func TestLooksAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		began, n := time.Now(), 0
		look := func(done bool, err error) func() (bool, error) {
			n = 0
			return func() (bool, error) { n++; return done && n == 3, err }
		}
		require.NoError(t, repeat(t.Context(), look(true, nil)))
		require.Equal(t, 3, n)
		require.Equal(t, 2*repeatPause, time.Since(began))
		require.ErrorIs(t, repeat(t.Context(), look(false, broken)), broken)
		require.Equal(t, 1, n)

		ctx, interrupt := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { interrupt(broken) })
		require.NoError(t, repeat(ctx, look(false, nil)), "that is how it ends")
		require.NoError(t, repeat(ctx, look(false, broken)), "what fails then fails for that")
	})
}

func TestAWatchedStatusIsText(t *testing.T) {
	code, _, errs := slipway("status", "--watch", "--output", "json")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "give --watch or --output json, not both")
}
