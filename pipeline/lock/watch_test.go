package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// machine is a clock of a machine that can be suspended, of which only Options.Boot knows. A test that
// waits for a lease to expire needs one: the system's clock does not follow that of synctest.
type machine struct {
	started time.Time
	slept   atomic.Int64
}

func newMachine() *machine { return &machine{started: time.Now()} }

func (m *machine) boot() time.Duration { return time.Since(m.started) + time.Duration(m.slept.Load()) }

// sleep suspends the machine.
func (m *machine) sleep(d time.Duration) { m.slept.Add(int64(d)) }

func (m *machine) options() lock.Options { return lock.Options{Boot: m.boot} }

func watch(t *testing.T, l *lock.Lock, run string) (context.Context, *lock.Watch) {
	t.Helper()
	ctx, w, err := l.Watch(t.Context(), run)
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return ctx, w
}

// TestWatch: it lasts as long as the holder gives signs of life, and says why it ended.
func TestWatch(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(t *testing.T, s *store.Store, his *faultyStore, lease *lock.Lease)
		says string
		most time.Duration // until the watch ends
	}{
		"broken by force": {func(t *testing.T, s *store.Store, _ *faultyStore, _ *lock.Lease) {
			_, err := lock.New(s, lock.Options{}).Unlock(t.Context(), bob, true)
			require.NoError(t, err)
		}, "bob@laptop (destroy, run 20260102-040506-d4e5f6) took it away at 2000-01-01T01:00:01Z", 3 * time.Second},
		"released": {func(t *testing.T, _ *store.Store, _ *faultyStore, lease *lock.Lease) {
			require.NoError(t, lease.Release(t.Context()))
		}, "it was released", 3 * time.Second},
		"its holder is dead": {func(_ *testing.T, _ *store.Store, his *faultyStore, _ *lock.Lease) {
			his.Set(faults{Error: 1})
		}, "no sign of life from its holder for 2", 23 * time.Second},
		"emptied store": {func(t *testing.T, s *store.Store, _ *faultyStore, _ *lock.Lease) {
			require.NoError(t, s.Delete(t.Context(), "lock/000000000001.json"))
		}, "was removed from the store", 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := memory(t), newMachine()
				his := faulty(s, faults{})
				_, lease := acquire(t, lock.New(his, m.options()), alice)
				ctx, w := watch(t, lock.New(s, m.options()), alice.Run)
				require.EqualValues(t, 1, w.Record().Generation)
				time.Sleep(time.Hour + time.Second)
				require.NoError(t, ctx.Err(), "%v", context.Cause(ctx))
				require.NoError(t, lock.Guard(ctx))
				c.lose(t, s, his, lease)
				start := time.Now()
				<-ctx.Done()
				require.LessOrEqual(t, time.Since(start), c.most)
				requireLost(t, context.Cause(ctx), c.says)
				requireLost(t, lock.Lost(ctx), c.says)
				require.NoError(t, lock.Guard(ctx), "there is a grace")
				time.Sleep(lock.DefaultGrace + time.Second)
				requireLost(t, lock.Guard(ctx), "")
				_ = lease.Release(t.Context()) // it may be lost
			})
		})
	}
}

// TestWatch_ofAStoreThatFails: one that is away for a while, or fails every now and then,
// ends nothing; one that stays away does.
func TestWatch_ofAStoreThatFails(t *testing.T) {
	for name, plan := range map[string]faults{
		"errors":     {Error: 0.2},
		"lost":       {LostReply: 0.2},
		"slow":       {Slow: 0.5, Delay: 4 * time.Second},
		"everything": {Error: 0.1, LostReply: 0.1, Slow: 0.3, Delay: 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := memory(t), newMachine()
				_, lease := acquire(t, lock.New(s, m.options()), alice)
				mine := faulty(s, faults{})
				ctx, _ := watch(t, lock.New(mine, m.options()), alice.Run)
				mine.Set(plan)
				time.Sleep(10 * time.Minute)
				require.NoError(t, ctx.Err(), "%v", context.Cause(ctx))
				mine.Set(faults{})
				time.Sleep(time.Minute)
				mine.Set(faults{Slow: 1, Delay: 1000 * time.Hour})
				time.Sleep(10 * time.Second)
				require.NoError(t, ctx.Err())
				mine.Set(faults{})
				time.Sleep(time.Minute)
				require.NoError(t, ctx.Err())
				mine.Set(faults{Error: 1})
				start := time.Now()
				<-ctx.Done()
				require.InDelta(t, lock.DefaultTTL.Seconds(), time.Since(start).Seconds(), 4)
				requireLost(t, context.Cause(ctx), "it could not be read (")
				require.NoError(t, lease.Release(t.Context()))
			})
		})
	}
}

// TestWatch_begins: it does not begin without a sign of life.
func TestWatch_begins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := memory(t), newMachine()
		l := lock.New(s, m.options())
		_, _, err := l.Watch(t.Context(), alice.Run)
		requireLost(t, err, "nobody has it")
		his := faulty(s, faults{})
		_, lease := acquire(t, lock.New(his, m.options()), alice)
		_, _, err = l.Watch(t.Context(), bob.Run)
		requireLost(t, err, "alice@build-7")
		start := time.Now()
		watch(t, l, alice.Run)
		require.Equal(t, start, time.Now(), "a fresh heartbeat is one")

		skewed := lock.New(s, lock.Options{Boot: m.boot, Clock: func() time.Time { return time.Now().Add(time.Hour) }})
		watch(t, skewed, alice.Run)
		require.LessOrEqual(t, time.Since(start), 4*time.Second, "by a clock that is wrong, the next one is")

		time.Sleep(time.Second)
		his.Set(faults{Error: 1})
		time.Sleep(12 * time.Second)
		ctx, _ := watch(t, l, alice.Run)
		time.Sleep(12 * time.Second) // the time before it began counts
		requireLost(t, context.Cause(ctx), "no sign of life")
		_, _, err = l.Watch(t.Context(), alice.Run)
		requireLost(t, err, "its holder gives no sign of life")
		require.Error(t, lease.Release(t.Context()))
	})
}

// TestSuspend: of a machine that sleeps the clocks stand still, and what it wakes up to is
// not its lock any more. Neither its holder nor what works for it writes anything.
func TestSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := memory(t), newMachine()
		ctx, lease := acquire(t, lock.New(s, m.options()), alice)
		work, _ := watch(t, lock.New(s, m.options()), alice.Run)
		time.Sleep(10 * time.Second)
		before, err := s.Get(t.Context(), "lock/000000000001.json")
		require.NoError(t, err)

		m.sleep(15 * time.Second)
		require.NoError(t, lock.Guard(work))
		require.NoError(t, lease.Check(ctx))
		time.Sleep(3 * time.Second)
		require.NoError(t, ctx.Err(), "it was short")
		require.NoError(t, work.Err())
		after, err := s.Get(t.Context(), "lock/000000000001.json")
		require.NoError(t, err)
		require.NotEqual(t, before, after)

		m.sleep(time.Minute)
		requireLost(t, lock.Guard(work), "nothing is known of it since 1m")
		requireLost(t, lease.Check(ctx), "the last heartbeat was 1m")
		<-ctx.Done()
		<-work.Done()
		time.Sleep(10 * time.Second)
		now, err := s.Get(t.Context(), "lock/000000000001.json")
		require.NoError(t, err)
		require.Equal(t, after, now)
		requireLost(t, lease.Release(t.Context()), "the last heartbeat was 1m")
	})
}

// TestSuspend_heartbeat: the holder itself notices at its next heartbeat.
func TestSuspend_heartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := memory(t), newMachine()
		ctx, lease := acquire(t, lock.New(s, m.options()), alice)
		time.Sleep(10 * time.Second)
		m.sleep(time.Minute)
		start := time.Now()
		<-ctx.Done()
		require.LessOrEqual(t, time.Since(start), lock.DefaultBeat)
		requireLost(t, context.Cause(ctx), "the last heartbeat was 1m")
		require.Error(t, lease.Release(t.Context()))
	})
}

// TestWatch_twoHolders: whatever happens to the holder, what works for it has ended or is
// bound by Guard before another one has the lock.
func TestWatch_twoHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := memory(t), newMachine()
		his := faulty(s, faults{})
		_, lease := acquire(t, lock.New(his, m.options()), alice)
		work, _ := watch(t, lock.New(s, m.options()), alice.Run)
		time.Sleep(10 * time.Second)
		his.Set(faults{Error: 1})
		ended := make(chan time.Time, 1)
		context.AfterFunc(work, func() { ended <- time.Now() })
		l := lock.New(s, m.options())
		_, taken, err := l.Acquire(t.Context(), bob)
		for err != nil {
			requireHeld(t, err, alice)
			time.Sleep(time.Second)
			_, taken, err = l.Acquire(t.Context(), bob)
		}
		require.GreaterOrEqual(t, time.Since(<-ended), lock.DefaultGrace)
		require.Error(t, lock.Guard(work))
		require.False(t, errors.Is(context.Cause(work), context.Canceled))
		require.NoError(t, taken.Release(t.Context()))
		require.Error(t, lease.Release(t.Context()))
	})
}

// TestWatch_lateSign: of a sign of life that is seen late, because the store was away, nobody
// knows when it was given. Until then that of before counts.
func TestWatch_lateSign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := memory(t), newMachine()
		his, mine := faulty(s, faults{}), faulty(s, faults{})
		_, lease := acquire(t, lock.New(his, m.options()), alice)
		time.Sleep(time.Second) // it does not look when the heartbeats are
		work, _ := watch(t, lock.New(mine, m.options()), alice.Run)
		time.Sleep(10 * time.Second)
		mine.Set(faults{Error: 1})
		time.Sleep(2 * time.Second) // there is one more heartbeat
		his.Set(faults{Error: 1})
		time.AfterFunc(12*time.Second, func() { mine.Set(faults{}) })
		l := lock.New(s, m.options())
		_, taken, err := l.Acquire(t.Context(), bob)
		for err != nil {
			requireHeld(t, err, alice)
			time.Sleep(time.Second)
			_, taken, err = l.Acquire(t.Context(), bob)
		}
		requireLost(t, lock.Guard(work), "")
		requireLost(t, context.Cause(work), "no sign of life from its holder for 2")
		require.NoError(t, taken.Release(t.Context()))
		require.Error(t, lease.Release(t.Context()))
	})
}

// TestGuard_ofOthers: who works under no watch is not guarded.
func TestGuard_ofOthers(t *testing.T) {
	require.NoError(t, lock.Guard(t.Context()))
	require.NoError(t, lock.Lost(t.Context()))
}
