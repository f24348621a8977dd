package dryrun_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/dryrun"
)

func TestCheck(t *testing.T) {
	ctx := t.Context()
	require.NoError(t, dryrun.Check(ctx, "write %s", "x"))
	dry := dryrun.Context(ctx)
	require.True(t, dryrun.On(dry))
	err := dryrun.Check(dry, "write %s", "x")
	require.ErrorIs(t, err, dryrun.ErrWouldChange)
	require.ErrorContains(t, err, "write x")
	require.NoError(t, dryrun.Check(dryrun.Allow(dry), "refresh"))
}
