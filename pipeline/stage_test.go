package pipeline_test

import (
	"context"
	"errors"
	"testing"

	"github.com/slipway-sh/slipway/fault"
	. "github.com/slipway-sh/slipway/pipeline"
	"github.com/stretchr/testify/require"
)

// staged is a/1 → a/2 and a/1 → b/1, whose first step fails with failing, with a
// hook before and one after each stage, which fail as bad says.
func staged(t *testing.T, rec *recorder, failing error, bad map[string]error, opts Options) ([]Result, error) {
	t.Helper()
	var p Pipeline
	step := func(stage, name string, err error, needs ...Dep) Dep {
		return Add(&p, Key{Stage: stage, Name: name}, func(context.Context) (int, error) { rec.add(stage + "/" + name); return 1, err }, needs...)
	}
	first := step("a", "1", failing)
	step("a", "2", nil, first)
	step("b", "1", nil, first)
	for _, stage := range []string{"a", "b"} {
		opts.Hooks = append(opts.Hooks, Hook{
			Step: stage,
			Before: func(_ context.Context, k Key) error {
				rec.add("before " + k.Stage + k.Name)
				return bad["before "+stage]
			},
			After: func(_ context.Context, r Result) error {
				rec.add("after " + r.Stage + r.Name + " " + string(r.Status))
				return bad["after "+stage]
			},
		})
	}
	opts.Parallel = 1
	return p.Run(t.Context(), opts)
}

func TestHooksAroundAStage(t *testing.T) {
	no := errors.New("no")
	for what, c := range map[string]struct {
		failing error
		bad     map[string]error
		opts    Options
		got     []string
		err     string
	}{
		"once each":         {nil, nil, Options{}, []string{"before a", "a/1", "a/2", "after a succeeded", "before b", "b/1", "after b succeeded"}, ""},
		"a step fails":      {no, nil, Options{}, []string{"before a", "a/1", "after a failed"}, "a/1: no"},
		"before":            {nil, map[string]error{"before a": no}, Options{}, []string{"before a", "after a failed"}, "a/1: hook before the stage a: no"},
		"before the second": {nil, map[string]error{"before b": no}, Options{}, []string{"before a", "a/1", "a/2", "after a succeeded", "before b", "after b failed"}, "b/1: hook before the stage b: no"},
		"after":             {nil, map[string]error{"after a": no}, Options{}, []string{"before a", "a/1", "a/2", "after a succeeded"}, "hook after the stage a: no"},
		"skipped":           {nil, map[string]error{"before b": ErrSkip}, Options{}, []string{"before a", "a/1", "a/2", "after a succeeded", "before b", "after b succeeded"}, ""},
		"left out":          {nil, nil, Options{Until: []string{"a/1"}}, []string{"before a", "a/1", "after a succeeded"}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			var rec recorder
			_, err := staged(t, &rec, c.failing, c.bad, c.opts)
			require.Equal(t, c.got, rec.got)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}

// TestAHookThatFailsAfterAStopDoesNotHideIt: what was not started is still listed.
func TestAHookThatFailsAfterAStopDoesNotHideIt(t *testing.T) {
	var rec recorder
	no := errors.New("no")
	stop := make(chan struct{})
	_, err := staged(t, &rec, nil, map[string]error{"after a": no}, Options{Stop: stop, Observe: func(e Event) {
		if e.Status == Running {
			close(stop)
		}
	}})
	require.Equal(t, []string{"before a", "a/1", "after a failed"}, rec.got)
	left, _ := errors.AsType[*CancelError](err)
	require.NotNil(t, left)
	require.Len(t, left.Unstarted, 2)
	require.Equal(t, fault.Cancelled, fault.ClassOf(err))
	require.ErrorIs(t, err, no)
}

// TestAStageBeginsOnce: its steps may start at the same time.
func TestAStageBeginsOnce(t *testing.T) {
	var p Pipeline
	var rec recorder
	for _, name := range []string{"1", "2", "3", "4"} {
		Add(&p, Key{Stage: "a", Name: name}, func(context.Context) (int, error) { rec.add("step"); return 1, nil })
	}
	_, err := p.Run(t.Context(), Options{Hooks: []Hook{{
		Step:   "a",
		Before: func(context.Context, Key) error { rec.add("before"); return nil },
		After:  func(context.Context, Result) error { rec.add("after"); return nil },
	}}})
	require.NoError(t, err)
	require.Equal(t, []string{"before", "step", "step", "step", "step", "after"}, rec.got)
}

// TestAPanicInAHookOfAStageIsAnError, of every step of it.
func TestAPanicInAHookOfAStageIsAnError(t *testing.T) {
	var p Pipeline
	for _, name := range []string{"1", "2"} {
		Add(&p, Key{Stage: "a", Name: name}, func(context.Context) (int, error) { t.Error("ran"); return 1, nil })
	}
	results, err := p.Run(t.Context(), Options{Hooks: []Hook{{Step: "a", Before: func(context.Context, Key) error { panic("no") }}}})
	require.Error(t, err)
	for _, r := range results {
		require.ErrorContains(t, r.Err, "panic: no")
	}
}
