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
	"github.com/stretchr/testify/require"
)

// plan is a random graph: what each step needs and what it does.
type plan struct {
	needs   [][]int
	settled []map[int]bool // which needs are settled ones
	ends    []string       // "ok", "reuse", "fail", "skip", "panic"
	takes   []time.Duration
}

func randomPlan(r *rand.Rand) plan {
	n := 1 + r.IntN(14)
	p := plan{needs: make([][]int, n), settled: make([]map[int]bool, n), ends: make([]string, n), takes: make([]time.Duration, n)}
	for i := range n {
		p.settled[i] = map[int]bool{}
		for j := range i {
			if r.IntN(4) == 0 {
				p.needs[i] = append(p.needs[i], j)
				p.settled[i][j] = r.IntN(5) == 0
			}
		}
		p.ends[i] = []string{"ok", "ok", "ok", "ok", "reuse", "fail", "skip", "panic"}[r.IntN(8)]
		p.takes[i] = time.Duration(1+r.IntN(5)) * time.Second
	}
	return p
}

func (p plan) cleanup(i int) bool {
	for _, settled := range p.settled[i] {
		if settled {
			return true
		}
	}
	return false
}

// model is how the steps of p end, one after the other, when nothing stops them:
// statuses, the failed steps behind each blocked one, and when each ends.
func (p plan) model() (status []Status, by [][]int, end []time.Duration) {
	for i := range p.needs {
		var failed []int
		var start time.Duration
		skipped := false
		for _, j := range p.needs[i] {
			start = max(start, end[j])
			if p.settled[i][j] {
				continue
			}
			switch status[j] {
			case Failed:
				failed = append(failed, j)
			case Blocked:
				failed = append(failed, by[j]...)
			case Skipped:
				skipped = true
			}
		}
		slices.Sort(failed)
		by = append(by, slices.Compact(failed))
		switch {
		case len(failed) > 0:
			status, end = append(status, Blocked), append(end, start)
		case skipped:
			status, end = append(status, Skipped), append(end, start)
		default:
			s := map[string]Status{"ok": Succeeded, "reuse": Reused, "fail": Failed, "panic": Failed, "skip": Skipped}[p.ends[i]]
			status, end = append(status, s), append(end, start+p.takes[i])
		}
	}
	return status, by, end
}

// build makes the pipeline of p. Steps check that what they need has ended; they
// count themselves in running.
func (p plan) build(t *testing.T, running, most *atomic.Int32) *Pipeline {
	pipe := new(Pipeline)
	steps := make([]*Step[int], len(p.needs))
	for i := range p.needs {
		var deps []Dep
		for _, j := range p.needs[i] {
			if p.settled[i][j] {
				deps = append(deps, Settled(steps[j]))
			} else {
				deps = append(deps, steps[j])
			}
		}
		steps[i] = Add(pipe, key(fmt.Sprint(i)), func(ctx context.Context) (int, error) {
			now := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			sum := 1
			for _, j := range p.needs[i] {
				_, settled := steps[j].Result()
				require.True(t, settled)
				if !p.settled[i][j] {
					sum += steps[j].Value()
				}
			}
			select {
			case <-time.After(p.takes[i]):
			case <-ctx.Done():
				return 0, ctx.Err()
			}
			switch p.ends[i] {
			case "fail":
				return 0, errors.New("fails")
			case "panic":
				panic("panics")
			case "skip":
				return 0, ErrSkip
			case "reuse":
				Describe(ctx, Detail{Reused: true})
			}
			return sum, nil
		}, deps...)
	}
	return pipe
}

func TestRun_likeTheModel(t *testing.T) {
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) { // a goroutine left behind is a deadlock, which fails
			r := rand.New(rand.NewPCG(seed, 1))
			p := randomPlan(r)
			parallel := r.IntN(4)
			var running, most atomic.Int32
			start := time.Now()
			results, err := p.build(t, &running, &most).Run(t.Context(), Options{Parallel: parallel})

			status, by, end := p.model()
			var failures []string
			for i, got := range results {
				require.Equal(t, status[i], got.Status, "seed %d step %d", seed, i)
				if parallel == 0 {
					require.Equal(t, end[i], got.Finished.Sub(start), "seed %d step %d", seed, i)
				}
				if b, ok := errors.AsType[*BlockedError](got.Err); ok {
					var keys []Key
					for _, j := range by[i] {
						keys = append(keys, key(fmt.Sprint(j)))
					}
					require.Equal(t, keys, b.By, "seed %d step %d", seed, i)
				}
				if got.Status == Failed {
					failures = append(failures, got.Name)
				}
			}
			require.Equal(t, failures, failedSteps(err), "seed %d", seed)
			if parallel > 0 {
				require.LessOrEqual(t, int(most.Load()), parallel, "seed %d", seed)
			}
		})
	}
}

// failedSteps are the names of the steps in a joined error, in its order.
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

func TestRun_interruptedAnywhere(t *testing.T) {
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			p := randomPlan(r)
			when := time.Duration(r.IntN(9000)+1) * time.Millisecond
			hard := r.IntN(2) == 0
			stop := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			timer := time.AfterFunc(when, func() {
				if hard {
					cancel()
				} else {
					close(stop)
				}
			})
			defer timer.Stop()
			start := time.Now()
			var running, most atomic.Int32
			results, err := p.build(t, &running, &most).Run(ctx, Options{Parallel: r.IntN(4), Stop: stop})
			interrupted := false
			for i, got := range results {
				at := fmt.Sprintf("seed %d step %d: %+v", seed, i, got)
				require.NotEqual(t, Running, got.Status, at)
				if !got.Started.IsZero() && got.Started.Sub(start) > when {
					require.True(t, p.cleanup(i), "%s started after the end", at)
				}
				if got.Status == Cancelled {
					interrupted = true
					require.Error(t, got.Err, at)
					require.True(t, hard || got.Started.IsZero(), "%s: a stop lets it finish", at)
				}
				if p.cleanup(i) && !got.Started.IsZero() {
					require.Equal(t, p.takes[i], got.Elapsed(), "%s: clean-up is not interrupted", at)
				}
			}
			_, cancelErr := errors.AsType[*CancelError](err)
			require.Equal(t, interrupted, cancelErr, "seed %d: %v", seed, err)
			require.Zero(t, running.Load())
		})
	}
}
