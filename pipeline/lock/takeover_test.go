package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
)

// TestAcquire_ofADeadHolder: one that was killed is taken over once what works for it must
// have ended, and only then.
func TestAcquire_ofADeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := memory(t), newMachine()
		his := faulty(s, faults{})
		ctx, lease := acquire(t, lock.New(his, m.options()), alice)
		time.Sleep(11 * time.Second) // its last heartbeat is 2 s old
		his.Set(faults{Error: 1})
		time.Sleep(17 * time.Second)
		var waits []time.Duration
		l := lock.New(s, lock.Options{Waiting: func(_ lock.Record, _ error, d time.Duration) { waits = append(waits, d) }})
		seen := time.Now()
		_, _, err := l.Acquire(t.Context(), bob)
		requireHeld(t, err, alice)
		require.NoError(t, ctx.Err(), "it has its time yet")

		time.Sleep(2 * time.Second)
		requireLost(t, context.Cause(ctx), "no heartbeat could be written within 20s: list lock/: injected error")
		live, err := l.Live(t.Context())
		require.NoError(t, err)
		require.Nil(t, live, "the record is held, but too old")
		bobs, taken := acquire(t, l, bob)
		const over = lock.DefaultTTL + lock.DefaultBeat + lock.DefaultGrace
		require.Equal(t, over, time.Since(seen), "what works for it has the time to live, a heartbeat and the grace")
		require.Equal(t, []time.Duration{over - 2*time.Second}, waits)
		require.Equal(t, alice, taken.Record().After.Holder)
		require.Equal(t, "its holder gave no sign of life for 53s", taken.Record().After.Why)

		his.Set(faults{})
		requireLost(t, lease.Release(t.Context()), "no heartbeat")
		require.NoError(t, bobs.Err())
		require.NoError(t, taken.Check(t.Context()), "the old holder does no harm")
		history, err := l.History(t.Context())
		require.NoError(t, err)
		require.Len(t, history, 1)
		require.Equal(t, bob, history[0].Holder)
		require.Equal(t, alice, history[0].After.Holder)
		require.NoError(t, taken.Release(t.Context()))
	})
}

// TestAcquire_ofOneThatIsGone: where it is known that nothing works for a holder any more,
// nobody waits, and it stays known until the lock is taken.
func TestAcquire_ofOneThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		_, lease := acquire(t, lock.New(s, lock.Options{}), alice)
		gone, known := false, 0
		var created []int // how much was known then
		l := lock.New(&gate{Store: s, before: func(op, _ string) {
			if op == "create" {
				created = append(created, known)
			}
		}}, lock.Options{Gone: func(who lock.Holder) (func(), bool) {
			require.Equal(t, alice, who)
			if !gone {
				return nil, false
			}
			known++
			return func() { known-- }, true
		}})
		_, _, err := l.Acquire(t.Context(), bob)
		requireHeld(t, err, alice)
		gone = true
		start := time.Now()
		_, taken := acquire(t, l, bob)
		require.Equal(t, start, time.Now())
		require.Equal(t, []int{1, 0}, created, "the record, and the attempt to create it again")
		require.Zero(t, known)
		after := taken.Record().After
		require.Equal(t, "every process of it has ended", after.Why)
		require.NoError(t, taken.Release(t.Context()))
		require.Error(t, lease.Release(t.Context()))
	})
}

// TestAcquire_lateHeartbeat: a contender that stood still for a while does not know what
// happened meanwhile, even if a heartbeat that the network has delayed makes the record look
// as before.
func TestAcquire_lateHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		ctx, lease := acquire(t, lock.New(s, lock.Options{}), alice)
		time.Sleep(10 * time.Second)
		l := lock.New(s, lock.Options{})
		_, _, err := l.Acquire(t.Context(), bob)
		requireHeld(t, err, alice)
		early, err := s.Get(t.Context(), "lock/000000000001.json")
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, s.Put(t.Context(), "lock/000000000001.json", early))
		_, _, err = l.Acquire(t.Context(), bob)
		requireHeld(t, err, alice)
		require.NoError(t, lease.Check(ctx))
		require.NoError(t, lease.Release(t.Context()))
	})
}

// TestAcquire_clocksDiffer: a wrong clock neither kills a holder that is alive
// nor keeps a dead one.
func TestAcquire_clocksDiffer(t *testing.T) {
	for name, skew := range map[string]time.Duration{"a little behind": -15 * time.Second, "a little ahead": 15 * time.Second, "behind": -time.Hour, "far behind": -1000 * time.Hour, "ahead": time.Hour, "far ahead": 1000 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory(t)
				his := faulty(s, faults{})
				_, lease := acquire(t, lock.New(his, lock.Options{Clock: func() time.Time { return time.Now().Add(skew) }}), alice)
				for range 5 {
					time.Sleep(7 * time.Second)
					_, _, err := lock.New(s, lock.Options{}).Acquire(t.Context(), bob)
					requireHeld(t, err, alice)
				}
				time.Sleep(2 * time.Second) // no heartbeat is due at this moment
				his.Set(faults{Error: 1})
				killed := time.Now()
				l := lock.New(s, lock.Options{})
				_, taken, err := l.Acquire(t.Context(), bob)
				for errors.Is(err, &fault.Fault{Code: lock.CodeHeld}) { // by its clock it was alive
					time.Sleep(time.Second)
					_, taken, err = l.Acquire(t.Context(), bob)
				}
				require.NoError(t, err)
				require.GreaterOrEqual(t, time.Since(killed), 53*time.Second, "its clock does not shorten the time of what works for it")
				require.LessOrEqual(t, time.Since(killed), 56*time.Second)
				require.Error(t, lease.Release(t.Context()))
				require.NoError(t, taken.Release(t.Context()))
			})
		})
	}
}
