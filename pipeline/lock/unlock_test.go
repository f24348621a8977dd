package lock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/store"
)

func TestUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		l := lock.New(s, lock.Options{})
		_, err := l.Unlock(t.Context(), bob, true)
		require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeNotLocked})
		require.Equal(t, fault.Usage, fault.ClassOf(err))

		ctx, lease := acquire(t, l, alice)
		_, err = l.Unlock(t.Context(), bob, false)
		requireHeld(t, err, alice)
		require.NoError(t, lease.Check(ctx))

		at := time.Now().UTC()
		record, err := l.Unlock(t.Context(), bob, true)
		require.NoError(t, err)
		_, err = l.Unlock(t.Context(), bob, true)
		require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeNotLocked})
		<-ctx.Done()
		require.LessOrEqual(t, time.Since(at), lock.DefaultBeat, "it finds out at its next heartbeat")
		requireLost(t, context.Cause(ctx), "bob@laptop (destroy, run 20260102-040506-d4e5f6) took it away at 2000-01-01T00:00:00Z")
		requireLost(t, lease.Release(t.Context()), "took it away")

		_, next := acquire(t, l, bob)
		require.Equal(t, 53*time.Second, time.Since(at), "what works for alice may notice only by its time to live, and has the grace to end")
		require.NoError(t, next.Release(t.Context()))
		history, err := l.History(t.Context())
		require.NoError(t, err)
		require.Equal(t, []lock.Record{record}, history)
		require.Equal(t, lock.Forced, history[0].State)
		require.Equal(t, bob, history[0].Holder)
		require.Equal(t, at, history[0].Acquired)
		require.Equal(t, alice, history[0].After.Holder)
		for range 40 {
			_, lease := acquire(t, l, alice)
			require.NoError(t, lease.Release(t.Context()))
		}
		history, err = l.History(t.Context())
		require.NoError(t, err)
		require.Empty(t, history, "old records are removed")
	})
}

// TestUnlock_ofADeadHolder needs no force.
func TestUnlock_ofADeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := memory(t), newMachine()
		his := faulty(s, faults{})
		ctx, lease := acquire(t, lock.New(his, m.options()), alice)
		his.Set(faults{Error: 1})
		start := time.Now()
		<-ctx.Done()
		require.Equal(t, lock.DefaultTTL, time.Since(start))
		time.Sleep(time.Second)
		l := lock.New(s, lock.Options{})
		_, err := l.Unlock(t.Context(), bob, false)
		require.NoError(t, err)
		history, err := l.History(t.Context())
		require.NoError(t, err)
		require.Len(t, history, 1)
		require.Contains(t, history[0].After.Why, "no sign of life for 53s")
		at := time.Now()
		_, next := acquire(t, l, bob)
		require.Equal(t, at, time.Now(), "it was waited for")
		require.NoError(t, next.Release(t.Context()))
		require.Error(t, lease.Release(t.Context()))
	})
}

// TestUnlock_unseen: what works for the holder and cannot read that the lock was broken is
// not let do anything any more when the next one has it.
func TestUnlock_unseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := memory(t), newMachine()
		_, lease := acquire(t, lock.New(s, m.options()), alice)
		his := faulty(s, faults{})
		work, _ := watch(t, lock.New(his, m.options()), alice.Run)
		time.Sleep(10 * time.Second)
		his.Set(faults{Error: 1})
		l := lock.New(s, m.options())
		_, err := l.Unlock(t.Context(), bob, true)
		require.NoError(t, err)
		_, next := acquire(t, l, bob)
		requireLost(t, lock.Guard(work), "")
		require.NoError(t, next.Release(t.Context()))
		require.Error(t, lease.Release(t.Context()))
	})
}

// TestUnlock_damaged: of a holder whose record cannot be read nobody knows how long it takes,
// so that one like the others is waited for.
func TestUnlock_damaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		_, lease := acquire(t, lock.New(s, lock.Options{}), alice)
		require.NoError(t, s.Put(t.Context(), "lock/000000000001.json", []byte("torn")))
		l := lock.New(s, lock.Options{})
		at := time.Now()
		_, err := l.Unlock(t.Context(), bob, true)
		require.NoError(t, err)
		_, next := acquire(t, l, bob)
		require.Equal(t, 53*time.Second, time.Since(at))
		require.NoError(t, next.Release(t.Context()))
		require.Error(t, lease.Release(t.Context()))
	})
}

// TestPlantedRecords: whoever writes the bucket does not stop the deployment for good with one object.
func TestPlantedRecords(t *testing.T) {
	valid := func(t *testing.T, generation int64) []byte {
		t.Helper()
		data, err := store.Seal("lock", 1, map[string]any{"generation": generation, "state": "held", "ttlMilliseconds": int64(1) << 60, "beat": "9999-12-31T23:59:59Z"})
		require.NoError(t, err)
		return data
	}
	for name, c := range map[string]struct {
		key     string
		data    func(*testing.T) []byte
		waits   time.Duration
		ignored bool
	}{
		"the highest number":               {"lock/999999999999.json", func(t *testing.T) []byte { return valid(t, 999999999999) }, 0, true},
		"the highest number, torn":         {"lock/999999999999.json", func(*testing.T) []byte { return []byte("{") }, 0, true},
		"torn":                             {"lock/000000000030.json", func(*testing.T) []byte { return []byte(`{"kind":"lock"`) }, 53 * time.Second, false},
		"wrong types":                      {"lock/000000000030.json", func(*testing.T) []byte { return []byte(`{"kind":7,"record":[]}` + "\n") }, 53 * time.Second, false},
		"of another generation":            {"lock/000000000030.json", func(t *testing.T) []byte { return valid(t, 7) }, 53 * time.Second, false},
		"too large":                        {"lock/000000000030.json", func(*testing.T) []byte { return make([]byte, store.MaxBytes+1) }, 53 * time.Second, false},
		"too large, of long ago":           {"lock/000000000001.json", func(*testing.T) []byte { return make([]byte, store.MaxBytes+1) }, 0, true},
		"a name that is no generation":     {"lock/1000000000000.json", func(*testing.T) []byte { return []byte("{") }, 0, true},
		"a name that leads somewhere else": {"lock/..%2f..%2f000000000099.json", func(*testing.T) []byte { return nil }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, force := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					dir := t.TempDir()
					s, err := store.Open(t.Context(), "file://"+dir, store.Options{})
					require.NoError(t, err)
					for range 20 {
						_, lease := acquire(t, lock.New(s, lock.Options{}), alice)
						require.NoError(t, lease.Release(t.Context()))
					}
					require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(c.key)), c.data(t), 0o600))
					var damage error
					l := lock.New(s, lock.Options{Waiting: func(_ lock.Record, why error, _ time.Duration) { damage = errors.Join(damage, why) }})
					if force {
						_, err := l.Current(t.Context())
						if c.ignored {
							require.NoError(t, err)
						} else {
							require.ErrorIs(t, err, &fault.Fault{Code: store.CodeDamaged})
							require.ErrorContains(t, err, c.key)
							_, err = l.Unlock(t.Context(), bob, true)
							require.NoError(t, err)
							damage = nil
						}
					}
					at := time.Now()
					_, lease := acquire(t, l, bob)
					require.Equal(t, c.waits, time.Since(at))
					if c.waits > 0 && !force {
						require.ErrorContains(t, damage, c.key)
					}
					require.NoError(t, lease.Release(t.Context()))
					for range 20 {
						_, lease := acquire(t, l, alice)
						require.NoError(t, lease.Release(t.Context()))
					}
				})
			}
		})
	}
}

// TestPlantedRecords_withoutOthers: where no record is left, the highest numbers do not end the lock either.
func TestPlantedRecords_withoutOthers(t *testing.T) {
	for name, planted := range map[string][]int64{
		"one":       {999_999_999_999},
		"two":       {999_999_999_998, 999_999_999_999},
		"far apart": {1_000_000, 999_999_999_999},
		"low ones":  {7, 8},
		"large":     {50_000_000_000},
		"at limit":  {99_999_999_999}, // after which the numbers begin anew: one run is stopped
	} {
		for _, force := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, force %v", name, force), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := memory(t)
					l := lock.New(s, lock.Options{})
					for _, g := range planted {
						require.NoError(t, s.Put(t.Context(), fmt.Sprintf("lock/%012d.json", g), []byte("{")))
					}
					if force {
						_, err := l.Unlock(t.Context(), bob, true)
						if !errors.Is(err, &fault.Fault{Code: lock.CodeNotLocked}) {
							require.NoError(t, err)
						}
					}
					stopped := 0
					for range 40 {
						ctx, lease := acquire(t, l, alice)
						err := errors.Join(lease.Check(ctx), lease.Release(ctx))
						if name == "at limit" && errors.Is(err, &fault.Fault{Code: lock.CodeLost}) {
							stopped++
							continue
						}
						require.NoError(t, err)
					}
					require.LessOrEqual(t, stopped, 1)
				})
			})
		}
	}
}
