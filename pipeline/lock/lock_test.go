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
	"github.com/slipway-sh/slipway/pipeline/store"
)

var (
	alice = lock.Holder{User: "alice", Host: "build-7", Run: "20260102-030405-a1b2c3", Workflow: "install"}
	bob   = lock.Holder{User: "bob", Host: "laptop", Run: "20260102-040506-d4e5f6", Workflow: "destroy"}
)

func memory(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "mem://", store.Options{})
	require.NoError(t, err)
	return s
}

func acquire(t *testing.T, l *lock.Lock, who lock.Holder) (context.Context, *lock.Lease) {
	t.Helper()
	ctx, lease, err := l.Acquire(t.Context(), who)
	require.NoError(t, err)
	return ctx, lease
}

func requireHeld(t *testing.T, err error, by lock.Holder) {
	t.Helper()
	require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeHeld})
	require.Equal(t, fault.Locked, fault.ClassOf(err))
	require.ErrorContains(t, err, by.String()+" has had the lock since ")
}

func requireLost(t *testing.T, err error, says string) {
	t.Helper()
	require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeLost})
	require.Equal(t, fault.Locked, fault.ClassOf(err))
	require.ErrorContains(t, err, says)
}

func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		l := lock.New(s, lock.Options{})
		current, err := l.Current(t.Context())
		require.NoError(t, err)
		require.Nil(t, current)

		ctx, lease := acquire(t, l, alice)
		time.Sleep(time.Hour + 2*time.Second) // heartbeats keep it
		start := time.Now()
		_, _, err = lock.New(s, lock.Options{}).Acquire(t.Context(), bob)
		requireHeld(t, err, alice)
		require.ErrorContains(t, err, "alice@build-7 (install, run 20260102-030405-a1b2c3) has had the lock since 2000-01-01T00:00:00Z; last sign of life 2s ago")
		f, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, f.Fix, "slipway unlock --force")
		require.Equal(t, start, time.Now(), "it does not wait for a holder that is alive")
		current, err = l.Current(t.Context())
		require.NoError(t, err)
		require.Equal(t, alice, current.Holder)
		live, err := l.Live(t.Context())
		require.NoError(t, err)
		require.Equal(t, current, live)
		require.NoError(t, lease.Check(ctx))
		held, err := l.HeldBy(t.Context(), alice.Run)
		require.NoError(t, err)
		require.EqualValues(t, 1, held.Generation)
		_, err = l.HeldBy(t.Context(), bob.Run)
		requireLost(t, err, "run 20260102-040506-d4e5f6 does not hold it any more: alice@build-7 (install, run 20260102-030405-a1b2c3) has it")

		require.NoError(t, lease.Release(t.Context()))
		_, err = l.HeldBy(t.Context(), alice.Run)
		requireLost(t, err, "nobody has it")
		require.NoError(t, lease.Release(t.Context()), "again")
		require.ErrorIs(t, context.Cause(ctx), context.Canceled)
		current, err = l.Current(t.Context())
		require.NoError(t, err)
		require.Nil(t, current)
		live, err = l.Live(t.Context())
		require.NoError(t, err)
		require.Nil(t, live)

		ctx, lease = acquire(t, lock.New(s, lock.Options{}), bob)
		require.EqualValues(t, 2, lease.Record().Generation)
		require.Nil(t, lease.Record().After)
		require.NoError(t, ctx.Err())
		require.NoError(t, lease.Release(ctx))
		history, err := l.History(t.Context())
		require.NoError(t, err)
		require.Empty(t, history)
	})
}

// TestRelease_ofACancelledRun: a run that is stopped still releases the lock.
func TestRelease_ofACancelledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		parent, cancel := context.WithCancel(t.Context())
		ctx, lease, err := lock.New(s, lock.Options{}).Acquire(parent, alice)
		require.NoError(t, err)
		cancel()
		time.Sleep(time.Minute) // cleaning up is done under the lock as well
		_, _, err = lock.New(s, lock.Options{}).Acquire(t.Context(), bob)
		requireHeld(t, err, alice)
		require.NoError(t, lease.Release(ctx))
		_, lease = acquire(t, lock.New(s, lock.Options{}), bob)
		require.NoError(t, lease.Release(t.Context()))
	})
}

// TestRelease_unreachable: the remedy mentions that others have to wait.
func TestRelease_unreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		his := faulty(s, faults{})
		_, lease := acquire(t, lock.New(his, lock.Options{}), alice)
		his.Set(faults{Slow: 1, Delay: time.Hour})
		start := time.Now()
		err := lease.Release(t.Context())
		require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeRelease})
		require.Equal(t, err, lease.Release(t.Context()))
		require.LessOrEqual(t, time.Since(start), 15*time.Second)
		f, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, f.Fix, "after 53s")
		_, _, err = lock.New(s, lock.Options{}).Acquire(t.Context(), bob)
		requireHeld(t, err, alice)
	})
}

// gate lets a test delay operations.
type gate struct {
	lock.Store
	before func(op, key string)
}

func (g *gate) Put(ctx context.Context, key string, data []byte) error {
	g.before("put", key)
	return g.Store.Put(ctx, key, data)
}

func (g *gate) Create(ctx context.Context, key string, data []byte) error {
	g.before("create", key)
	return g.Store.Create(ctx, key, data)
}

// TestCheck: it reads the store and does not wait for the next heartbeat.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		his := faulty(s, faults{})
		ctx, lease := acquire(t, lock.New(his, lock.Options{}), alice)
		require.NoError(t, lease.Check(ctx))
		his.Set(faults{Error: 1})
		require.ErrorIs(t, lease.Check(ctx), errInjected)
		require.NoError(t, ctx.Err(), "an unreachable store does not lose the lock")
		his.Set(faults{})
		_, err := lock.New(s, lock.Options{}).Unlock(t.Context(), bob, true)
		require.NoError(t, err)
		requireLost(t, lease.Check(ctx), "bob@laptop")
		requireLost(t, context.Cause(ctx), "bob@laptop")
		requireLost(t, lease.Check(ctx), "bob@laptop")
		requireLost(t, lease.Release(ctx), "bob@laptop")
	})
}

// TestAcquire_late: a contender that was held up between its look and its record
// does not get a lock that others have taken, given up and forgotten meanwhile.
func TestAcquire_late(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		late, goOn := make(chan string, 1), make(chan struct{})
		slow := &gate{Store: s, before: func(op, key string) {
			if op == "create" && late != nil {
				late <- key
				late = nil
				<-goOn
			}
		}}
		result := make(chan error, 1)
		at := late
		go func() {
			_, _, err := lock.New(slow, lock.Options{}).Acquire(t.Context(), bob)
			result <- err
		}()
		require.Equal(t, "lock/000000000001.json", <-at)
		l := lock.New(s, lock.Options{})
		for range 40 {
			_, lease := acquire(t, l, alice)
			require.NoError(t, lease.Release(t.Context()))
		}
		ctx, lease := acquire(t, l, alice)
		keys, err := s.List(t.Context(), "lock/")
		require.NoError(t, err)
		require.Len(t, keys, 17, "old records are removed")
		require.NotContains(t, keys, "lock/000000000001.json")
		close(goOn)
		requireHeld(t, <-result, alice)
		keys, err = s.List(t.Context(), "lock/")
		require.NoError(t, err)
		require.NotContains(t, keys, "lock/000000000001.json", "it leaves nothing behind")
		require.NoError(t, lease.Check(ctx))
		require.NoError(t, lease.Release(ctx))
	})
}

// TestAcquire_damagedRecord: what cannot be read is not trusted, and not taken for
// free either.
func TestAcquire_damagedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		l := lock.New(s, lock.Options{})
		ctx, lease := acquire(t, l, alice)
		whole, err := s.Get(t.Context(), "lock/000000000001.json")
		require.NoError(t, err)
		require.NoError(t, s.Put(t.Context(), "lock/000000000001.json", whole[:len(whole)/2]))
		_, err = l.Current(t.Context())
		_, ok := errors.AsType[*store.RecordError](err)
		require.True(t, ok)
		require.ErrorContains(t, err, "it is torn")
		require.ErrorContains(t, err, "lock/000000000001.json")
		_, _, err = l.Acquire(t.Context(), bob)
		requireHeld(t, err, alice) // who mended it with the next heartbeat
		require.NoError(t, ctx.Err())
		require.NoError(t, lease.Release(ctx))

		require.NoError(t, s.Put(t.Context(), "lock/000000000007.json", []byte("not ours")))
		start := time.Now()
		_, lease = acquire(t, l, bob)
		require.Equal(t, 53*time.Second, time.Since(start))
		require.EqualValues(t, 8, lease.Record().Generation)
		require.Contains(t, lease.Record().After.Why, "lock record lock/000000000007.json: it is torn")
		require.NoError(t, lease.Release(t.Context()))

		// The record of another generation, under the next name.
		other, err := s.Get(t.Context(), "lock/000000000008.json")
		require.NoError(t, err)
		require.NoError(t, s.Put(t.Context(), "lock/000000000009.json", other))
		_, lease = acquire(t, l, bob)
		require.Contains(t, lease.Record().After.Why, "it is foreign: it is of generation 8")
		require.NoError(t, lease.Release(t.Context()))
	})
}

// TestLease_recordRemoved: emptying the store breaks the lock.
func TestLease_recordRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		l := lock.New(s, lock.Options{})
		first, lease := acquire(t, l, alice)
		require.NoError(t, s.Delete(t.Context(), "lock/000000000001.json"))
		second, taken := acquire(t, l, bob)
		<-first.Done()
		requireLost(t, context.Cause(first), "lock/000000000001.json is of bob@laptop")
		require.Error(t, lease.Release(t.Context()))
		require.NoError(t, second.Err())
		time.Sleep(time.Second) // a heartbeat on its way would write it again
		require.NoError(t, s.Delete(t.Context(), "lock/000000000001.json"))
		<-second.Done()
		requireLost(t, context.Cause(second), "was removed from the store")
		require.Error(t, taken.Release(t.Context()))
	})
}

// TestAcquire_lostReplies: a request of which no answer arrived may have been
// served.
func TestAcquire_lostReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		for _, plan := range []faults{{Duplicate: 1}, {LostReply: 1}} {
			his := faulty(s, plan)
			l := lock.New(&onlyCreate{his, s}, lock.Options{})
			ctx, lease := acquire(t, l, alice)
			require.NoError(t, lease.Check(ctx))
			require.NoError(t, lease.Release(ctx))
			require.NotEmpty(t, his.Counts())
		}
	})
}

// onlyCreate injects faults into Create only.
type onlyCreate struct {
	faulty *faultyStore
	lock.Store
}

func (o *onlyCreate) Create(ctx context.Context, key string, data []byte) error {
	return o.faulty.Create(ctx, key, data)
}

// TestAcquire_cancelled: a cancelled Acquire leaves the lock free.
func TestAcquire_cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		ctx, cancel := context.WithCancel(t.Context())
		slow := &created{Store: s, after: cancel}
		_, _, err := lock.New(slow, lock.Options{}).Acquire(ctx, alice)
		require.ErrorIs(t, err, context.Canceled)
		start := time.Now()
		_, lease := acquire(t, lock.New(s, lock.Options{}), bob)
		require.Equal(t, start, time.Now())
		require.NoError(t, lease.Release(t.Context()))
	})
}

// TestAcquire_unconditional: a store that ignores the condition is detected.
func TestAcquire_unconditional(t *testing.T) {
	s := memory(t)
	_, _, err := lock.New(unconditional{s}, lock.Options{}).Acquire(t.Context(), alice)
	require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeNoLock})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	current, err := lock.New(s, lock.Options{}).Current(t.Context())
	require.NoError(t, err)
	require.Nil(t, current)
}

type unconditional struct{ lock.Store }

func (u unconditional) Create(ctx context.Context, key string, data []byte) error {
	return u.Put(ctx, key, data)
}

// TestAcquire_slow: who needs so long to take the lock that others may take it
// for expired does not get it, and leaves it free.
func TestAcquire_slow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		slow := &created{Store: s, after: func() { time.Sleep(11 * time.Second) }}
		_, _, err := lock.New(slow, lock.Options{}).Acquire(t.Context(), alice)
		requireLost(t, err, "it took 11s to take it")
		current, err := lock.New(s, lock.Options{}).Current(t.Context())
		require.NoError(t, err)
		require.Nil(t, current)
		slow.after = func() { time.Sleep(9 * time.Second) }
		ctx, lease, err := lock.New(slow, lock.Options{}).Acquire(t.Context(), alice)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, lease.Check(ctx))
		require.NoError(t, lease.Release(ctx))
	})
}

type created struct {
	lock.Store
	after func()
}

func (c *created) Create(ctx context.Context, key string, data []byte) error {
	err := c.Store.Create(ctx, key, data)
	if err == nil {
		c.after()
	}
	return err
}
