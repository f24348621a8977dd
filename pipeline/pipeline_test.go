package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-sh/slipway/fault"
	. "github.com/slipway-sh/slipway/pipeline"
	"github.com/stretchr/testify/require"
)

// recorder records events in order.
type recorder struct {
	mu  sync.Mutex
	got []string
}

func (r *recorder) add(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, s)
}

func key(name string) Key { return Key{Stage: "test", Name: name} }

func statuses(results []Result) map[string]Status {
	out := map[string]Status{}
	for _, r := range results {
		out[r.Name] = r.Status
	}
	return out
}

func TestRun_outputsFlow(t *testing.T) {
	var p Pipeline
	a := Add(&p, key("a"), func(context.Context) (int, error) { return 20, nil })
	var b *Step[string]
	b = Add(&p, key("b"), func(context.Context) (string, error) {
		b.Describe(Detail{Reused: true, Log: "steps/b/log.txt"})
		return "2", nil
	})
	c := Add(&p, key("c"), func(context.Context) (string, error) { return fmt.Sprint(a.Value(), " ", b.Value()), nil }, a, b)
	results, err := p.Run(t.Context(), Options{})
	require.NoError(t, err)
	require.Equal(t, "20 2", c.Value())
	require.Equal(t, map[string]Status{"a": Succeeded, "b": Reused, "c": Succeeded}, statuses(results))
	require.Equal(t, Detail{Reused: true, Log: "steps/b/log.txt"}, results[1].Detail)
	require.False(t, results[2].Started.Before(results[0].Finished))
}

func TestRun_failureBlocksWhatNeedsItOnly(t *testing.T) {
	boom, bang := errors.New("boom"), errors.New("bang")
	for range 50 {
		var p Pipeline
		var rec recorder
		ok := func(name string) func(context.Context) (string, error) {
			return func(context.Context) (string, error) { rec.add(name); return name, nil }
		}
		failing := make(chan struct{})
		net := Add(&p, key("network"), ok("network"))
		cluster := Add(&p, key("cluster"), func(context.Context) (int, error) {
			defer close(failing)
			return 0, boom
		}, net)
		sibling := Add(&p, key("sibling"), func(ctx context.Context) (int, error) {
			<-failing
			rec.add("sibling")
			return 0, ctx.Err()
		}, net)
		git := Add(&p, key("git"), ok("git"), cluster)
		other := Add(&p, key("other"), func(context.Context) (int, error) { return 0, bang }, sibling)
		apps := Add(&p, key("apps"), ok("apps"), other, git, cluster)
		Add(&p, key("diagnostics"), func(context.Context) (int, error) {
			r, settled := cluster.Result()
			require.True(t, settled)
			require.ErrorIs(t, r.Err, boom)
			rec.add("diagnostics")
			return 0, nil
		}, Settled(apps))

		results, err := p.Run(t.Context(), Options{})
		require.EqualError(t, err, "test/cluster: boom\ntest/other: bang")
		require.ErrorIs(t, err, boom)
		require.ErrorIs(t, err, bang)
		step, isStep := errors.AsType[*StepError](err)
		require.True(t, isStep)
		require.Equal(t, "cluster", step.Step)
		require.Equal(t, []string{"network", "sibling", "diagnostics"}, rec.got)
		require.Equal(t, map[string]Status{
			"network": Succeeded, "cluster": Failed, "sibling": Succeeded, "git": Blocked,
			"other": Failed, "apps": Blocked, "diagnostics": Succeeded,
		}, statuses(results))
		require.EqualError(t, results[3].Err, "blocked by test/cluster")
		require.EqualError(t, results[5].Err, "blocked by test/cluster, test/other")
		require.Zero(t, results[3].Elapsed())
	}
}

func TestRun_limit(t *testing.T) {
	for parallel, want := range map[int]time.Duration{0: time.Minute, 1: 4 * time.Minute, 2: 2 * time.Minute, 3: 2 * time.Minute, 9: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var p Pipeline
			for i := range 4 {
				Add(&p, key(fmt.Sprint(i)), func(context.Context) (int, error) { time.Sleep(time.Minute); return 1, nil })
			}
			start := time.Now()
			results, err := p.Run(t.Context(), Options{Parallel: parallel})
			require.NoError(t, err)
			require.Equal(t, want, time.Since(start))
			require.Equal(t, time.Minute, results[0].Elapsed())
		})
	}
}

// TestRun_withoutLimit: as many as can run at the same time, however many, also
// after few did.
func TestRun_withoutLimit(t *testing.T) {
	var p Pipeline
	var layer []Dep
	for i, width := range []int{10, 1000, 1, 500} {
		var all sync.WaitGroup
		all.Add(width)
		var next []Dep
		for j := range width {
			next = append(next, Add(&p, key(fmt.Sprint(i, ".", j)), func(context.Context) (int, error) {
				all.Done()
				all.Wait()
				return 0, nil
			}, layer...))
		}
		layer = next
	}
	results, err := p.Run(t.Context(), Options{})
	require.NoError(t, err)
	for _, r := range results {
		require.Equal(t, Succeeded, r.Status, r.Key)
	}
}

// graph is: first (1 minute) → second; clean-up after both.
func graph(rec *recorder) (*Pipeline, *Step[int]) {
	p := new(Pipeline)
	first := Add(p, key("first"), func(ctx context.Context) (int, error) {
		select {
		case <-time.After(time.Minute):
			rec.add("first finished")
			return 7, nil
		case <-ctx.Done():
			rec.add("first interrupted")
			return 0, fmt.Errorf("wait: %w", context.Cause(ctx))
		}
	})
	second := Add(p, key("second"), func(context.Context) (int, error) { rec.add("second"); return 0, nil }, first)
	third := Add(p, key("third"), func(context.Context) (int, error) { rec.add("third"); return 0, nil }, second)
	Add(p, key("cleanup"), func(ctx context.Context) (int, error) {
		deadline, ok := ctx.Deadline()
		rec.add(fmt.Sprint("cleanup ", ctx.Err(), " ", ok, " ", time.Until(deadline)))
		return 0, nil
	}, Settled(third))
	return p, first
}

func TestRun_stopAtTheEndOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		p, first := graph(&rec)
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		start := time.Now()
		results, err := p.Run(t.Context(), Options{Stop: stop})
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, []string{"first finished", "cleanup <nil> true 2m0s"}, rec.got)
		require.Equal(t, 7, first.Value())
		require.Equal(t, map[string]Status{"first": Succeeded, "second": Cancelled, "third": Cancelled, "cleanup": Succeeded}, statuses(results))
		require.ErrorIs(t, err, ErrStopped)
		require.ErrorIs(t, err, &fault.Fault{Code: CodeCancelled})
		require.Equal(t, fault.Cancelled, fault.ClassOf(err))
		left, _ := errors.AsType[*CancelError](err)
		require.Empty(t, left.Interrupted)
		require.Equal(t, []Key{key("second"), key("third")}, left.Unstarted)
	})
}

func TestRun_stopBeforeTheStart(t *testing.T) {
	for range 50 {
		var rec recorder
		p, _ := graph(&rec)
		stop := make(chan struct{})
		close(stop)
		_, err := p.Run(t.Context(), Options{Stop: stop})
		require.ErrorIs(t, err, ErrStopped)
		require.Len(t, rec.got, 1, "only the clean-up: %v", rec.got)
	}
}

func TestRun_stopThenCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		p, _ := graph(&rec)
		stop := make(chan struct{})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { close(stop) })
		time.AfterFunc(2*time.Second, func() { cancel(errors.New("second interrupt")) })
		start := time.Now()
		results, err := p.Run(ctx, Options{Stop: stop, CleanupTimeout: time.Hour})
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Equal(t, []string{"first interrupted", "cleanup <nil> true 1h0m0s"}, rec.got)
		require.Equal(t, Cancelled, results[0].Status)
		require.EqualError(t, results[0].Err, "wait: second interrupt")
		require.Equal(t, fault.Cancelled, fault.ClassOf(err))
		left, _ := errors.AsType[*CancelError](err)
		require.Equal(t, []Key{key("first")}, left.Interrupted)
	})
}

func TestRun_deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		p, _ := graph(&rec)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Run(ctx, Options{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, &fault.Fault{Code: CodeTimeout})
		require.ErrorContains(t, err, "last seen running: ")
		require.Equal(t, fault.Timeout, fault.ClassOf(err))
	})
}

func TestRun_causeKeepsItsFault(t *testing.T) {
	var rec recorder
	p, _ := graph(&rec)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&fault.Fault{Code: "LCK-003", Class: fault.Locked, Op: "hold the lock", Err: errors.New("lost")})
	_, err := p.Run(ctx, Options{})
	require.Equal(t, fault.Locked, fault.ClassOf(err))
}

func TestRun_cancelAfterTheLastStepIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var p Pipeline
	Add(&p, key("a"), func(context.Context) (int, error) { cancel(); return 1, nil })
	_, err := p.Run(ctx, Options{})
	require.NoError(t, err)
}

func TestRun_cleanupTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pipeline
		a := Add(&p, key("a"), func(context.Context) (int, error) { return 0, nil })
		Add(&p, key("cleanup"), func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }, Settled(a))
		start := time.Now()
		results, err := p.Run(t.Context(), Options{CleanupTimeout: time.Minute})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, Failed, results[1].Status)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestRun_skip(t *testing.T) {
	var p Pipeline
	a := Add(&p, key("a"), func(context.Context) (int, error) { return 0, fmt.Errorf("not wanted: %w", ErrSkip) })
	b := Add(&p, key("b"), func(context.Context) (int, error) { t.Error("ran b"); return 0, nil }, a)
	Add(&p, key("c"), func(context.Context) (int, error) { return 0, nil }, Settled(b))
	results, err := p.Run(t.Context(), Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]Status{"a": Skipped, "b": Skipped, "c": Succeeded}, statuses(results))
}

func TestRun_panics(t *testing.T) {
	for range 50 {
		var p Pipeline
		cause := errors.New("cause")
		Add(&p, key("panic"), func(context.Context) (int, error) { panic(cause) })
		Add(&p, key("fine"), func(context.Context) (int, error) { return 0, nil })
		results, err := p.Run(t.Context(), Options{})
		require.ErrorContains(t, err, "panic: cause")
		require.Equal(t, fault.Bug, fault.ClassOf(err))
		require.ErrorContains(t, results[0].Err, "pipeline_test.go", "the stack")
		require.Equal(t, Succeeded, results[1].Status)
	}
}

func TestRun_events(t *testing.T) {
	var p Pipeline
	var got []string // no lock: calls do not overlap
	a := Add(&p, key("a"), func(context.Context) (int, error) { return 0, errors.New("no") })
	Add(&p, key("b"), func(context.Context) (int, error) { return 0, nil }, a)
	Add(&p, key("c"), func(context.Context) (int, error) { return 0, nil }, Settled(a))
	_, err := p.Run(t.Context(), Options{Observe: func(e Event) {
		got = append(got, e.Result.Name+" "+string(e.Status))
		require.Equal(t, e.Status, e.Result.Status)
		require.False(t, e.Time.IsZero())
	}})
	require.Error(t, err)
	require.Equal(t, []string{"a running", "a failed", "b blocked", "c running", "c succeeded"}, got)
}

func TestMisusePanics(t *testing.T) {
	nop := func(context.Context) (int, error) { return 0, nil }
	var p, q Pipeline
	a := Add(&p, key("a"), nop)
	b := Add(&q, key("b"), nop)
	for want, f := range map[string]func(){
		"two steps are named test/a":               func() { Add(&p, key("a"), nop) },
		"test/c needs test/a, which is of another": func() { Add(&q, key("c"), nop, a) },
		"test/d needs a nil step":                  func() { Add(&p, key("d"), nop, (*Step[int])(nil)) },
		"test/e needs a nil step":                  func() { Add(&p, key("e"), nop, nil) },
		"test/f needs a nil step":                  func() { Add(&p, key("f"), nop, Settled((*Step[int])(nil))) },
		"Settled(nil)":                             func() { Settled(nil) },
		"no stage or no name":                      func() { Add(&p, Key{Stage: "x"}, nop) },
		"nothing to run":                           func() { Add[int](&p, key("g"), nil) },
		"is it among the needs?":                   func() { a.Value() },
	} {
		require.Contains(t, panicOf(f), want)
	}
	_, err := q.Run(t.Context(), Options{})
	require.NoError(t, err)
	require.Zero(t, b.Value())
	require.Contains(t, panicOf(func() { _, _ = q.Run(t.Context(), Options{}) }), "run twice")
	require.Contains(t, panicOf(func() { Add(&q, key("late"), nop) }), "after the run began")

	var r Pipeline
	failed := Add(&r, key("x"), func(context.Context) (int, error) { return 0, errors.New("no") })
	_, err = r.Run(t.Context(), Options{})
	require.Error(t, err)
	require.Contains(t, panicOf(func() { failed.Value() }), "which is failed")
}

func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}

func TestGraph(t *testing.T) {
	var p Pipeline
	nop := func(context.Context) (int, error) { return 0, nil }
	a := Add(&p, key("a"), nop)
	b := Add(&p, key("b"), nop, a)
	Add(&p, key("c"), nop, a, Settled(b))
	require.Equal(t, []Node{
		{Key: key("a")},
		{Key: key("b"), Needs: []Key{key("a")}},
		{Key: key("c"), Needs: []Key{key("a")}, Settled: []Key{key("b")}},
	}, p.Graph())
	require.Equal(t, "test/a", a.Key().String())
	var empty Pipeline
	results, err := empty.Run(t.Context(), Options{})
	require.NoError(t, err)
	require.Empty(t, results)
}
