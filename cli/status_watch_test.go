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

// TestFramesWithoutATerminal are lines that a log can have: each change once.
func TestFramesWithoutATerminal(t *testing.T) {
	var out strings.Builder
	f := frames{out: &out}
	for _, c := range []struct{ text, says string }{
		{"demo: InProgress\n\nSTEP  STATUS\na/b   running\na/c   pending\n", "demo: InProgress\n\nSTEP  STATUS\na/b   running\na/c   pending\n"},
		{"demo: InProgress\n\nSTEP  STATUS\na/b   running\na/c   pending\n", ""},
		{"demo: InProgress\n\nSTEP  STATUS     TIME\na/b   succeeded  2s\na/c   pending    -\n", "STEP  STATUS     TIME\na/b   succeeded  2s\na/c   pending    -\n"},
		{"demo: InProgress\n\nSTEP  STATUS              TIME\na/b   succeeded           2s\na/c   blocked by x/y      -\n", "a/c   blocked by x/y      -\n"},
	} {
		out.Reset()
		require.NoError(t, f.show(c.text))
		require.Equal(t, c.says, out.String())
	}
}

// TestFramesOnATerminal replace one another, and none is longer than the terminal.
func TestFramesOnATerminal(t *testing.T) {
	var out strings.Builder
	f := frames{out: &out, on: progress.Options{Live: true, Size: func() (int, int) { return 80, 3 }}}
	require.NoError(t, f.show("a\n"))
	require.NoError(t, f.show("b\nc\nd\ne\n"))
	require.Equal(t, "\x1b[H\x1b[2Ja\n\x1b[H\x1b[2Jb\nc\n", out.String())
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
