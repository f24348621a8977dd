package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/slipway-sh/slipway/pipeline"
	"github.com/stretchr/testify/require"
)

// TestDiagnose_originalError: a step fails and so does its diagnosis; the user gets the
// original error, and the handler runs once.
func TestDiagnose_originalError(t *testing.T) {
	boom, no := errors.New("boom"), errors.New("no")
	for name, c := range map[string]struct {
		diagnose func() error
	}{
		"succeeds": {func() error { return nil }},
		"error":    {func() error { return no }},
		"panic":    {func() error { panic(no) }},
	} {
		t.Run(name, func(t *testing.T) {
			var p Pipeline
			var rec recorder
			a := Add(&p, key("a"), func(context.Context) (int, error) { return 0, boom })
			b := Add(&p, key("b"), func(context.Context) (int, error) { rec.add("b"); return 0, nil })
			Add(&p, key("c"), func(context.Context) (int, error) { return 0, errors.New("bang") })
			Add(&p, key("d"), func(context.Context) (int, error) { return 0, nil }, a)
			Optional(Add(&p, key("e"), func(context.Context) (int, error) { return 0, errors.New("a warning") }, b))
			results, err := p.Run(t.Context(), Options{
				Diagnose: func(_ context.Context, failed []Result) error {
					for _, r := range failed {
						require.Equal(t, Failed, r.Status)
						rec.add(r.Name + " " + r.Err.Error())
					}
					failed[0].Status = "scribbled"
					return c.diagnose()
				},
				Hooks: []Hook{{After: func(_ context.Context, r Result) error {
					rec.add(r.Err.Error())
					return nil
				}}},
			})
			require.EqualError(t, err, "test/a: boom\ntest/c: bang")
			require.Equal(t, []string{"b", "a boom", "c bang", "test/a: boom\ntest/c: bang"}, rec.got)
			require.Equal(t, map[string]Status{"a": Failed, "b": Succeeded, "c": Failed, "d": Blocked, "e": Warned}, statuses(results))
			require.NotErrorIs(t, err, no)
		})
	}
}

func TestDiagnose_onlyAfterAFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var p Pipeline
	a := Add(&p, key("a"), func(context.Context) (int, error) { return 0, ErrSkip })
	Optional(Add(&p, key("b"), func(context.Context) (int, error) { return 0, errors.New("no") }, Settled(a)))
	Add(&p, key("c"), func(ctx context.Context) (int, error) { cancel(); return 0, ctx.Err() })
	_, err := p.Run(ctx, Options{Diagnose: func(context.Context, []Result) error { t.Error("diagnosed"); return nil }})
	require.ErrorIs(t, err, context.Canceled)
}

// TestDiagnose_beforeTheCleanup: what a clean-up step stops is still there.
func TestDiagnose_beforeTheCleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pipeline
		var rec recorder
		cluster := Add(&p, key("cluster"), func(context.Context) (int, error) { rec.add("cluster"); return 0, nil })
		bad := Add(&p, key("bad"), func(context.Context) (int, error) { rec.add("bad"); return 0, errors.New("no") }, cluster)
		slow := Add(&p, key("slow"), func(context.Context) (int, error) {
			time.Sleep(time.Minute)
			rec.add("slow")
			return 0, nil
		}, cluster)
		stop := Add(&p, key("stop"), func(context.Context) (int, error) { rec.add("stop"); return 0, errors.New("no stop") }, Settled(bad))
		Add(&p, key("after"), func(context.Context) (int, error) { rec.add("after"); return 0, nil }, Settled(stop))
		Add(&p, key("late"), func(context.Context) (int, error) { rec.add("late"); return 0, nil }, slow)
		_, err := p.Run(t.Context(), Options{Diagnose: func(_ context.Context, failed []Result) error {
			require.Len(t, failed, 1)
			rec.add("diagnosis")
			return nil
		}})
		require.EqualError(t, err, "test/bad: no\ntest/stop: no stop")
		require.Equal(t, []string{"cluster", "bad", "slow", "late", "diagnosis", "stop", "after"}, rec.got)
	})
}

// TestDiagnose_ofACleanup: the first failure is that of a clean-up step.
func TestDiagnose_ofACleanup(t *testing.T) {
	var p Pipeline
	var rec recorder
	a := Add(&p, key("a"), func(context.Context) (int, error) { rec.add("a"); return 0, nil })
	b := Add(&p, key("b"), func(context.Context) (int, error) { rec.add("b"); return 0, errors.New("no") }, Settled(a))
	Add(&p, key("c"), func(context.Context) (int, error) { rec.add("c"); return 0, nil }, Settled(b))
	_, err := p.Run(t.Context(), Options{Diagnose: func(_ context.Context, failed []Result) error {
		rec.add("diagnosis of " + failed[0].Name)
		return nil
	}})
	require.EqualError(t, err, "test/b: no")
	require.Equal(t, []string{"a", "b", "diagnosis of b", "c"}, rec.got)
}

// TestDiagnose_afterCancellation: neither that nor a stop reaches it; its time is
// limited.
func TestDiagnose_afterCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "value"))
		var p Pipeline
		failed := Add(&p, key("a"), func(context.Context) (int, error) { return 0, errors.New("no") })
		Add(&p, key("b"), func(ctx context.Context) (int, error) {
			for _, ok := failed.Result(); !ok; _, ok = failed.Result() {
				time.Sleep(time.Second)
			}
			cancel()
			return 0, ctx.Err()
		})
		start := time.Now()
		_, err := p.Run(ctx, Options{CleanupTimeout: time.Minute, Diagnose: func(ctx context.Context, failed []Result) error {
			require.NoError(t, ctx.Err())
			require.Equal(t, "value", ctx.Value(valueKey{}))
			begun := time.Now()
			<-ctx.Done()
			require.Equal(t, context.DeadlineExceeded, ctx.Err())
			require.Equal(t, time.Minute, time.Since(begun))
			return ctx.Err()
		}})
		require.Equal(t, []string{"a"}, failedSteps(err))
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(start), time.Minute+2*time.Second)
	})
}
