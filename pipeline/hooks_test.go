package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/slipway-sh/slipway/pipeline"
	"github.com/stretchr/testify/require"
)

// TestHooks_order: before-workflow, before, step, after, after-workflow, in the order of
// Options.Hooks.
func TestHooks_order(t *testing.T) {
	var p Pipeline
	var rec recorder
	a := Add(&p, key("a"), func(context.Context) (int, error) { rec.add("a"); return 1, nil })
	Add(&p, key("b"), func(context.Context) (int, error) { rec.add("b"); return 1, nil }, a)
	hook := func(name, step string) Hook {
		return Hook{
			Step:   step,
			Before: func(_ context.Context, k Key) error { rec.add(name + " before " + k.Name); return nil },
			After: func(_ context.Context, r Result) error {
				rec.add(name + " after " + r.Name + " " + string(r.Status))
				return nil
			},
		}
	}
	_, err := p.Run(t.Context(), Options{Hooks: []Hook{hook("1", ""), hook("2", "test/b"), hook("3", EveryStep), {Step: EveryStep}, hook("4", "")}})
	require.NoError(t, err)
	require.Equal(t, []string{
		"1 before ", "4 before ", "3 before a", "a", "3 after a succeeded",
		"2 before b", "3 before b", "b", "2 after b succeeded", "3 after b succeeded", "1 after  succeeded", "4 after  succeeded",
	}, rec.got)
}

func TestHooks_errors(t *testing.T) {
	no := errors.New("no")
	build := func(rec *recorder) *Pipeline {
		p := new(Pipeline)
		a := Add(p, key("a"), func(context.Context) (int, error) { rec.add("a"); return 1, nil })
		b := Add(p, key("b"), func(context.Context) (int, error) { rec.add("b"); return 1, nil }, a)
		Add(p, key("c"), func(context.Context) (int, error) { rec.add("c"); return 1, nil }, Settled(b))
		return p
	}
	for name, c := range map[string]struct {
		hook Hook
		err  string
		ran  string
	}{
		"before a step":  {Hook{Step: "test/a", Before: func(context.Context, Key) error { return no }}, "test/a: hook before the step: no", "c"},
		"after a step":   {Hook{Step: "test/a", After: func(context.Context, Result) error { return no }}, "test/a: hook after the step: no", "a c"},
		"skipping":       {Hook{Step: "test/a", Before: func(context.Context, Key) error { return ErrSkip }}, "", "c"},
		"before the run": {Hook{Before: func(context.Context, Key) error { return no }}, "hook before the run: no", ""},
		"after the run":  {Hook{After: func(context.Context, Result) error { return no }}, "hook after the run: no", "a b c"},
		"unknown step":   {Hook{Step: "test/z"}, `a hook is bound to step "test/z", which does not exist`, ""},
		"panic":          {Hook{Step: "test/b", After: func(context.Context, Result) error { panic("oh") }}, "test/b: panic: oh", "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			var rec recorder
			_, err := build(&rec).Run(t.Context(), Options{Hooks: []Hook{c.hook}})
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
			require.Equal(t, c.ran, strings.Join(rec.got, " "))
		})
	}
}

func TestHooks_afterCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var p Pipeline
	var rec recorder
	Add(&p, key("a"), func(ctx context.Context) (int, error) { cancel(); return 0, ctx.Err() })
	_, err := p.Run(ctx, Options{Hooks: []Hook{
		{Step: EveryStep, After: func(ctx context.Context, r Result) error { rec.add(fmt.Sprint(r.Status, " ", ctx.Err())); return nil }},
		{After: func(ctx context.Context, r Result) error {
			rec.add(fmt.Sprint(r.Status, " ", ctx.Err(), " ", errors.Is(r.Err, context.Canceled)))
			return nil
		}},
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, slices.Equal([]string{"cancelled <nil>", "failed <nil> true"}, rec.got), "%v", rec.got)
}

// TestHooks_unknownStep: hooks on unknown steps are an error that lists all of them, and
// nothing runs.
func TestHooks_unknownStep(t *testing.T) {
	var p Pipeline
	Add(&p, key("a"), func(context.Context) (int, error) { t.Error("ran a"); return 0, nil })
	results, err := p.Run(t.Context(), Options{
		Until: []string{"test/y"},
		Hooks: []Hook{
			{Before: func(context.Context, Key) error { t.Error("before the run"); return nil }},
			{Step: "tset"}, {Step: "test"}, {Step: "test/a"}, {Step: "test/z"},
		},
	})
	require.ErrorContains(t, err, `a hook is bound to step "tset", which does not exist`)
	require.ErrorContains(t, err, `a hook is bound to step "test/z", which does not exist`)
	require.ErrorContains(t, err, `"test/y"`)
	require.NotContains(t, err.Error(), `"test/a"`)
	require.Empty(t, results)
}
