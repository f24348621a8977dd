package step_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestAStepNeedsTheLockOfItsRun: one that another run has taken away keeps a step
// from running.
func TestAStepNeedsTheLockOfItsRun(t *testing.T) {
	b := newBench(t)
	locked := contract.Request{Locked: true}
	code, res := b.run(locked)
	require.Equal(t, int(fault.Locked), code)
	require.ErrorIs(t, res.Fault, &fault.Fault{Code: lock.CodeLost})
	require.ErrorContains(t, res.Fault, "nobody has it")

	s, err := store.Open(t.Context(), "file://"+b.path("state"), store.Options{})
	require.NoError(t, err)
	ctx, lease, err := lock.New(s, lock.Options{}).Acquire(t.Context(), lock.Holder{User: "bob", Host: "laptop", Run: "r2"})
	require.NoError(t, err)
	code, res = b.run(locked)
	require.Equal(t, int(fault.Locked), code)
	require.ErrorContains(t, res.Fault, "run r1 does not hold it any more: bob@laptop (r2) has it")
	require.Zero(t, b.calls)

	locked.Run = "r2"
	code, _ = b.run(locked)
	require.Zero(t, code)
	require.Equal(t, 1, b.calls)
	require.NoError(t, lease.Release(ctx))
	require.NoError(t, s.Close())
}
