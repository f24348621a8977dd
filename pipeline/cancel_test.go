package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-sh/slipway/fault"
	. "github.com/slipway-sh/slipway/pipeline"
	"github.com/stretchr/testify/require"
)

// TestRun_whatIsLeft: after the first interrupt the caller knows which steps would
// have run; after the second one also which were interrupted. What failed, what
// that blocks, what is not selected and clean-up steps are not among them.
func TestRun_whatIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		second      bool
		interrupted []Key
		unstarted   []Key
		ok          []string
		text        string
	}{
		"stop":             {false, nil, []Key{key("waiting"), key("next"), key("last")}, []string{"done", "slow", "cleanup"}, "run the pipeline: stopped on request (steps interrupted: 0, not started: 3)"},
		"stop then cancel": {true, []Key{key("slow")}, []Key{key("waiting"), key("next"), key("last")}, []string{"done", "cleanup"}, "run the pipeline: stopped on request (steps interrupted: 1, not started: 3)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p Pipeline
				nop := func(context.Context) (int, error) { return 0, nil }
				wait := func(ctx context.Context) (int, error) {
					select {
					case <-time.After(time.Hour):
						return 0, nil
					case <-ctx.Done():
						return 0, context.Cause(ctx)
					}
				}
				done := Add(&p, key("done"), nop)
				bad := Add(&p, key("bad"), func(context.Context) (int, error) { return 0, errors.New("no") })
				slow := Add(&p, key("slow"), wait, done)
				Add(&p, key("blocked"), nop, bad, slow)
				Add(&p, key("waiting"), nop, done) // for its turn
				next := Add(&p, key("next"), nop, slow)
				last := Add(&p, key("last"), nop, next)
				Add(&p, key("cleanup"), nop, Settled(last))
				Add(&p, Key{Stage: "other", Name: "unselected"}, nop, last)

				stop := make(chan struct{})
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				again := errors.New("second interrupt")
				time.AfterFunc(time.Minute, func() { close(stop) })
				if c.second {
					time.AfterFunc(2*time.Minute, func() { cancel(again) })
				}
				start := time.Now()
				results, err := p.Run(ctx, Options{Stop: stop, Parallel: 1, Until: []string{"test"}})
				require.ErrorContains(t, err, c.text)
				left, ok := errors.AsType[*CancelError](err)
				require.True(t, ok)
				require.Equal(t, c.interrupted, left.Interrupted)
				require.Equal(t, c.unstarted, left.Unstarted)
				require.Equal(t, ErrStopped, left.Cause, "what came first")
				require.ErrorIs(t, err, ErrStopped)
				require.ErrorIs(t, err, &fault.Fault{Code: CodeCancelled})
				require.Equal(t, []string{"bad"}, failedSteps(err))
				status := statuses(results)
				require.Equal(t, Blocked, status["blocked"])
				require.Equal(t, Unselected, status["unselected"])
				for _, name := range c.ok {
					require.Equal(t, Succeeded, status[name], name)
				}
				if c.second {
					require.Equal(t, again, results[2].Err)
				}
				require.Equal(t, ErrStopped, results[4].Err)
				require.Equal(t, time.Minute, results[4].Finished.Sub(start), "told at once")
			})
		})
	}
}

// TestRun_halted: as after a stop what runs ends, and the cause says why the rest did not
// start; a fault stays what it is.
func TestRun_halted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pipeline
		why := &fault.Fault{Code: "ABC-001", Class: fault.Locked, Err: errors.New("somebody else works on it")}
		halt := make(chan error, 1)
		slow := Add(&p, key("slow"), func(ctx context.Context) (int, error) {
			halt <- why
			time.Sleep(time.Minute)
			return 0, ctx.Err()
		})
		next := Add(&p, key("next"), func(context.Context) (int, error) { return 0, nil }, slow)
		Add(&p, key("cleanup"), func(context.Context) (int, error) { return 0, nil }, Settled(next))
		results, err := p.Run(t.Context(), Options{Halt: halt})
		require.Equal(t, map[string]Status{"slow": Succeeded, "next": Cancelled, "cleanup": Succeeded}, statuses(results))
		require.ErrorIs(t, err, why)
		require.Equal(t, fault.Locked, fault.ClassOf(err))
		require.ErrorIs(t, results[1].Err, why)
	})
}
