package step_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
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

// TestAStepThatLosesTheLockOfItsRun is told to end at once, and says why it did whatever it
// returns; one whose holder was killed learns it from the heartbeats that do not come.
func TestAStepThatLosesTheLockOfItsRun(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(*testing.T, *lock.Lock, context.CancelFunc)
		err  error
		says string
	}{
		"taken away": {func(t *testing.T, l *lock.Lock, _ context.CancelFunc) {
			_, err := l.Unlock(t.Context(), lock.Holder{User: "boss", Host: "desk"}, true)
			require.NoError(t, err)
		}, nil, "boss@desk took it away"},
		"taken away, and the step fails": {func(t *testing.T, l *lock.Lock, _ context.CancelFunc) {
			_, err := l.Unlock(t.Context(), lock.Holder{User: "boss", Host: "desk"}, true)
			require.NoError(t, err)
		}, &fault.Fault{Code: "ABC-001", Class: fault.Timeout, Err: context.Canceled}, "boss@desk took it away"},
		"its holder is dead": {func(_ *testing.T, _ *lock.Lock, kill context.CancelFunc) { kill() }, nil, "no sign of life from its holder"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s, err := store.Open(t.Context(), "file://"+b.path("state"), store.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			holder := &mortal{Store: s}
			holder.alive, holder.kill = context.WithCancel(t.Context())
			l := lock.New(s, lock.Options{})
			_, lease, err := lock.New(holder, lock.Options{Beat: 50 * time.Millisecond, TTL: 3 * time.Second}).Acquire(t.Context(), lock.Holder{User: "u", Run: "r1"})
			require.NoError(t, err)
			b.do = func(ctx context.Context, _ *step.Env) {
				time.Sleep(500 * time.Millisecond)
				require.NoError(t, ctx.Err())
				c.lose(t, l, holder.kill)
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Second):
					t.Error("the step was not told")
				}
				b.err = c.err
				if b.err == nil {
					b.err = ctx.Err()
				}
			}
			code, res := b.run(contract.Request{Run: "r1", Locked: true})
			require.Equal(t, int(fault.Locked), code, res.Fault)
			require.ErrorIs(t, res.Fault, &fault.Fault{Code: lock.CodeLost})
			require.ErrorContains(t, res.Fault, c.says)
			require.Error(t, lease.Release(t.Context()))
		})
	}
}

// TestAStepThatHasLostTheLock writes nothing that another run reads back, and does not succeed;
// its own run knows how it ended.
func TestAStepThatHasLostTheLock(t *testing.T) {
	b := newBench(t)
	root := b.path("state")
	s, err := store.Open(t.Context(), "file://"+root, store.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, lease, err := lock.New(s, lock.Options{}).Acquire(t.Context(), lock.Holder{User: "u", Run: "r1"})
	require.NoError(t, err)
	next := journal.On(s, "test").Under(2, s)
	b.do = func(ctx context.Context, env *step.Env) {
		require.EqualValues(t, 1, env.Generation())
		own, err := env.Store(ctx)
		require.NoError(t, err)
		require.NoError(t, own.Put(ctx, "cluster/000000000001.json", []byte("r1")))
		_, idle := state.Backend{Volume: root}.Idle("r1")
		require.False(t, idle, "others see that it works")
		_, err = lock.New(s, lock.Options{}).Unlock(t.Context(), lock.Holder{User: "boss", Host: "desk"}, true)
		require.NoError(t, err)
		require.ErrorIs(t, own.Put(ctx, "cluster/000000000001.json", []byte("late")), &fault.Fault{Code: lock.CodeLost})
		attempt, err := next.Begin(ctx, "r2", "stage", "measure", digests("d1"))
		require.NoError(t, err)
		require.NoError(t, next.End(ctx, attempt, []byte(`{"length":2}`), nil))
	}
	code, res := b.run(contract.Request{Run: "r1", Locked: true, Digests: digests("d1")})
	require.Equal(t, int(fault.Locked), code)
	require.ErrorIs(t, res.Fault, &fault.Fault{Code: lock.CodeLost})
	last, err := next.Last(t.Context(), "stage", "measure")
	require.NoError(t, err)
	require.Equal(t, "r2", last.Run)
	require.False(t, res.Began.IsZero())
	data, err := s.Get(t.Context(), "cluster/000000000001.json")
	require.NoError(t, err)
	require.Equal(t, "r1", string(data))
	done, idle := state.Backend{Volume: root}.Idle("r1")
	require.True(t, idle)
	done()
	require.Error(t, lease.Release(t.Context()))
}

// mortal is a store that does not answer the holder of a lock any more once it is killed.
type mortal struct {
	lock.Store
	alive context.Context
	kill  context.CancelFunc
}

func (m *mortal) Put(ctx context.Context, key string, data []byte) error {
	if m.alive.Err() != nil {
		return m.alive.Err()
	}
	return m.Store.Put(ctx, key, data)
}
