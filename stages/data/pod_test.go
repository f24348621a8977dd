package data

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/step"
)

// TestACleanupEndsBeforeItsProcess, all parts of it one after the other.
func TestACleanupEndsBeforeItsProcess(t *testing.T) {
	require.Less(t, closing+3*cleanupLimit, step.Grace)
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		during, end := lasting(ctx)
		defer end()
		time.Sleep(3 * cleanupLimit)
		require.NoError(t, during.Err())
		interrupt()
		after, end := lasting(ctx)
		defer end()
		time.Sleep(cleanupLimit - time.Millisecond)
		require.NoError(t, during.Err())
		require.NoError(t, after.Err())
		time.Sleep(2 * time.Millisecond)
		require.Error(t, during.Err())
		require.Error(t, after.Err())
	})
}
