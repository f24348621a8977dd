package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/slipway-sh/slipway/pipeline"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// world is a run of a plan with everything that watches it.
type world struct {
	plan
	t        *testing.T
	in       []bool // which steps take part
	parallel int
	stopAt   time.Duration // 0: never
	cancelAt time.Duration // 0: never
	diagnose string        // how the diagnosis ends; "": there is none

	steps   []*Step[int]
	running atomic.Int32
	runs    []atomic.Int32

	// Of the goroutine that calls Run.
	starts    []int
	final     []Status
	failed    []Key
	diagnoses atomic.Int32
}

func newWorld(t *testing.T, p plan, in []bool) *world {
	return &world{plan: p, t: t, in: in, runs: make([]atomic.Int32, len(p.needs)), final: make([]Status, len(p.needs))}
}

// run runs the plan; start is when.
func (w *world) run(until []string) (results []Result, start time.Time, err error) {
	var pipe Pipeline
	w.steps = w.wire(&pipe, w.step)
	opts := Options{Until: until, Parallel: w.parallel, Hooks: w.hooks(), Observe: w.observe}
	if w.diagnose != "" {
		opts.Diagnose = w.diagnosis
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	if w.stopAt > 0 {
		stop := make(chan struct{})
		opts.Stop = stop
		defer time.AfterFunc(w.stopAt, func() { close(stop) }).Stop()
	}
	if w.cancelAt > 0 {
		defer time.AfterFunc(w.cancelAt, cancel).Stop()
	}
	start = time.Now()
	results, err = pipe.Run(ctx, opts)
	w.checkDiagnosis(results)
	return results, start, err
}

// step returns what step i does; it checks what it may rely on.
func (w *world) step(i int) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		assert.Equal(w.t, int32(1), w.runs[i].Add(1), "step %d: once at most", i)
		now := int(w.running.Add(1))
		defer w.running.Add(-1)
		assert.True(w.t, w.parallel == 0 || now <= w.parallel, "step %d: %d at once", i, now)
		sum := 1
		for _, j := range w.needs[i] {
			_, settled := w.steps[j].Result()
			assert.True(w.t, settled, "step %d starts before %d has ended", i, j)
			if !w.settled[i][j] {
				sum += w.steps[j].Value()
			}
		}
		if w.takes[i] > 0 {
			select {
			case <-time.After(w.takes[i]):
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		switch w.ends[i] {
		case "fail":
			return 0, errors.New("fails")
		case "panic":
			panic("panics")
		case "skip":
			return 0, ErrSkip
		case "reuse":
			w.steps[i].Describe(Detail{Reused: true})
		}
		return sum, nil
	}
}

func (w *world) hooks() []Hook {
	return []Hook{{
		Step: EveryStep,
		Before: func(_ context.Context, k Key) error {
			switch w.ends[number(k)] {
			case "before fails":
				return errors.New("before")
			case "before skips":
				return ErrSkip
			}
			return nil
		},
		After: func(ctx context.Context, r Result) error {
			assert.NoError(w.t, ctx.Err())
			if w.ends[number(r.Key)] == "after fails" {
				return errors.New("after")
			}
			return nil
		},
	}}
}

// observe checks that events come in a possible order.
func (w *world) observe(e Event) {
	i := number(e.Result.Key)
	assert.Empty(w.t, w.final[i], "step %d: an event after the end", i)
	if e.Status != Running {
		w.final[i] = e.Status
		if e.Status == Failed {
			w.failed = append(w.failed, e.Result.Key)
		}
		return
	}
	assert.NotContains(w.t, w.starts, i)
	assert.True(w.t, w.in[i], "step %d", i)
	for _, j := range w.needs[i] {
		assert.NotEmpty(w.t, w.final[j], "step %d starts before %d has ended", i, j)
	}
	if w.cleanup(i) && w.diagnose != "" && len(w.failed) > 0 {
		assert.EqualValues(w.t, 1, w.diagnoses.Load(), "clean-up step %d starts before the diagnosis", i)
	}
	w.starts = append(w.starts, i)
}

// diagnosis checks that it comes at the right time.
func (w *world) diagnosis(ctx context.Context, failed []Result) error {
	w.diagnoses.Add(1)
	assert.NoError(w.t, ctx.Err())
	assert.Zero(w.t, w.running.Load(), "steps run during the diagnosis")
	var keys []Key
	for _, r := range failed {
		assert.Equal(w.t, Failed, r.Status)
		keys = append(keys, r.Key)
	}
	slices.SortFunc(w.failed, func(a, b Key) int { return number(a) - number(b) })
	assert.Equal(w.t, w.failed, keys)
	after := w.reach()
	for i, status := range w.final {
		waits := w.cleanup(i)
		for j := range i {
			waits = waits || after[i][j] && w.cleanup(j)
		}
		assert.True(w.t, waits || status != "", "step %d has not ended at the diagnosis", i)
	}
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		assert.Fail(w.t, "the diagnosis was cancelled")
	}
	switch w.diagnose {
	case "fail":
		return errors.New("fails")
	case "panic":
		panic("panics")
	}
	return nil
}

// checkDiagnosis checks that it ran once if a step failed.
func (w *world) checkDiagnosis(results []Result) {
	want := int32(0)
	if w.diagnose != "" && slices.ContainsFunc(results, func(r Result) bool { return r.Status == Failed }) {
		want = 1
	}
	require.Equal(w.t, want, w.diagnoses.Load())
}

// check compares the run with what the model permits, given how the needs of each
// step have ended: where nothing interrupts, that is one status.
func (w *world) check(results []Result, start time.Time, err error) {
	status := make([]Status, len(results))
	by := make([][]int, len(results))
	var failures []string
	var left CancelError
	for i, r := range results {
		at := fmt.Sprintf("step %d: %+v", i, r)
		status[i] = r.Status
		require.Equal(w.t, w.final[i], r.Status, at)
		require.Equal(w.t, !r.Started.IsZero(), slices.Contains(w.starts, i), at)
		var verdict Status
		verdict, by[i] = w.verdict(i, status, by)
		ran, took := w.ran(i)
		switch {
		case !w.in[i]:
			require.Equal(w.t, Unselected, r.Status, at)
		case verdict != "":
			require.Equal(w.t, verdict, r.Status, at)
			require.Zero(w.t, r.Started, at)
		case r.Status == Cancelled:
			require.False(w.t, w.cleanup(i), at)
			require.True(w.t, w.cancelAt > 0 || w.stopAt > 0 && r.Started.IsZero(), at)
		default:
			require.Equal(w.t, ran, r.Status, at)
			require.Equal(w.t, took, r.Elapsed(), at)
			for _, when := range []time.Duration{w.stopAt, w.cancelAt} {
				require.True(w.t, when == 0 || w.cleanup(i) || r.Started.Sub(start) <= when, "%s started after the end", at)
			}
		}
		require.Equal(w.t, slices.Contains([]Status{Failed, Warned, Blocked, Cancelled}, r.Status), r.Err != nil, at)
		if b, ok := errors.AsType[*BlockedError](r.Err); ok {
			var keys []Key
			for _, j := range by[i] {
				keys = append(keys, w.key(j))
			}
			require.Equal(w.t, keys, b.By, at)
		}
		switch {
		case r.Status == Failed:
			failures = append(failures, r.Name)
		case r.Status == Cancelled && r.Started.IsZero():
			left.Unstarted = append(left.Unstarted, r.Key)
		case r.Status == Cancelled:
			left.Interrupted = append(left.Interrupted, r.Key)
		}
	}
	require.Equal(w.t, failures, failedSteps(err))
	got, ok := errors.AsType[*CancelError](err)
	if require.Equal(w.t, len(left.Unstarted)+len(left.Interrupted) > 0, ok, "%v", err); ok {
		require.Equal(w.t, left.Unstarted, got.Unstarted)
		require.Equal(w.t, left.Interrupted, got.Interrupted)
	}
	require.Equal(w.t, len(failures) > 0 || ok, err != nil)
	require.Zero(w.t, w.running.Load())
}

// failedSteps returns the names of the steps in a joined error, in its order.
func failedSteps(err error) []string {
	var names []string
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, e := range joined.Unwrap() {
		if s, ok := errors.AsType[*StepError](e); ok {
			names = append(names, s.Step)
		}
	}
	return names
}

const plans = 60 // per run of a property test

func TestRun_likeTheModel(t *testing.T) {
	for seed := range seeds(t, plans) {
		synctest.Test(t, func(t *testing.T) { // a goroutine left behind is a deadlock, which fails
			r := rand.New(rand.NewPCG(seed, 1))
			p := randomPlan(r)
			until := p.randomUntil(r)
			in := p.runs(until)
			w := newWorld(t, p, in)
			w.parallel = r.IntN(4)
			w.diagnose = []string{"", "", "ok", "fail", "panic"}[r.IntN(5)]
			results, start, err := w.run(until)
			w.check(results, start, err)
			want := p.model(in)
			require.Equal(t, want.status, w.final)
			if w.diagnoses.Load() > 0 {
				return // clean-up steps wait for it
			}
			switch w.parallel {
			case 0:
				for i, got := range results {
					require.Equal(t, want.end[i], got.Finished.Sub(start), "step %d", i)
				}
			case 1:
				require.Equal(t, want.order, w.starts)
			}
		})
	}
}

func TestRun_interruptedAnywhere(t *testing.T) {
	for seed := range seeds(t, plans) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			p := randomPlan(r)
			until := p.randomUntil(r)
			w := newWorld(t, p, p.runs(until))
			w.parallel = r.IntN(4)
			w.diagnose = []string{"", "ok", "fail", "panic"}[r.IntN(4)]
			at := time.Duration(1+r.IntN(9000)) * time.Millisecond
			if r.IntN(3) == 0 {
				at = max(1, at.Truncate(time.Second)) // just when steps end
			}
			switch r.IntN(3) {
			case 0:
				w.stopAt = at
			case 1:
				w.cancelAt = at
			default:
				w.stopAt, w.cancelAt = at, at+time.Duration(r.IntN(3000))*time.Millisecond
			}
			w.check(w.run(until))
		})
	}
}
