package pipeline_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/slipway-sh/slipway/pipeline"
	"github.com/stretchr/testify/require"
)

// TestOptional_failureIsAWarning: an optional step fails, and the run succeeds
// nevertheless.
func TestOptional_failureIsAWarning(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		run   func(context.Context) (int, error)
		hooks []Hook
		err   string
	}{
		"error":      {run: func(context.Context) (int, error) { return 0, no }, err: "no"},
		"panic":      {run: func(context.Context) (int, error) { panic(no) }, err: "panic: no"},
		"hook after": {run: func(context.Context) (int, error) { return 0, nil }, hooks: []Hook{{Step: "test/addon", After: func(context.Context, Result) error { return no }}}, err: "hook after the step: no"},
	} {
		t.Run(name, func(t *testing.T) {
			var p Pipeline
			cluster := Add(&p, key("cluster"), func(context.Context) (int, error) { return 1, nil })
			addon := Optional(Add(&p, key("addon"), c.run, cluster))
			page := Add(&p, key("page"), func(context.Context) (int, error) { t.Error("ran page"); return 0, nil }, addon)
			Add(&p, key("apps"), func(context.Context) (int, error) { return 1, nil }, cluster)
			Add(&p, key("cleanup"), func(context.Context) (int, error) {
				r, ok := addon.Result()
				require.True(t, ok)
				require.Equal(t, Warned, r.Status)
				return 1, nil
			}, Settled(addon), Settled(page))
			var events []Status
			results, err := p.Run(t.Context(), Options{
				Hooks: c.hooks,
				Observe: func(e Event) {
					if e.Result.Name == "addon" {
						events = append(events, e.Status)
					}
				},
				Diagnose: func(context.Context, []Result) error { t.Error("a warning is no failure"); return nil },
			})
			require.NoError(t, err)
			require.Equal(t, map[string]Status{"cluster": Succeeded, "addon": Warned, "page": Skipped, "apps": Succeeded, "cleanup": Succeeded}, statuses(results))
			require.ErrorContains(t, results[1].Err, c.err)
			require.Equal(t, []Status{Running, Warned}, events)
			require.False(t, Warned.OK())
			require.Contains(t, panicOf(func() { addon.Value() }), "which is warned")
		})
	}
}

// TestSpare: a step that can do without another runs also when that warned or was skipped,
// after it, and not when it failed or was blocked.
func TestSpare(t *testing.T) {
	for addonIs, optional := range map[Status]bool{Warned: true, Failed: false} {
		var p Pipeline
		addon := Add(&p, key("addon"), func(context.Context) (int, error) { return 0, errors.New("no") })
		want := map[string]Status{"addon": addonIs, "page": Blocked, "end": Blocked}
		if optional {
			Optional(addon)
			want["page"], want["end"] = Skipped, Succeeded
		}
		page := Add(&p, key("page"), func(context.Context) (int, error) { t.Error("ran page"); return 0, nil }, addon)
		Add(&p, key("end"), func(context.Context) (int, error) {
			for step, want := range map[*Step[int]]Status{addon: Warned, page: Skipped} {
				r, ok := step.Result()
				require.True(t, ok)
				require.Equal(t, want, r.Status)
			}
			return 1, nil
		}, Spare(addon), Spare(page))
		results, _ := p.Run(t.Context(), Options{})
		require.Equal(t, want, statuses(results))
		require.Equal(t, []Key{key("addon"), key("page")}, p.Graph()[2].Needs)
	}
	require.Contains(t, panicOf(func() { Spare(nil) }), "Spare(nil)")
}

func TestOptional_otherwiseLikeAnyStep(t *testing.T) {
	var p Pipeline
	a := Optional(Add(&p, key("a"), func(context.Context) (int, error) { return 7, nil }))
	b := Add(&p, key("b"), func(context.Context) (int, error) { return a.Value(), errors.New("no") }, a)
	Optional(Add(&p, key("c"), func(context.Context) (int, error) { return 0, nil }, b))
	ctx, cancel := context.WithCancel(t.Context())
	Optional(Add(&p, key("d"), func(ctx context.Context) (int, error) { cancel(); return 0, ctx.Err() }, Optional(Add(&p, key("z"), func(context.Context) (int, error) { return 0, nil }))))
	results, err := p.Run(ctx, Options{Parallel: 1})
	require.Equal(t, map[string]Status{"a": Succeeded, "b": Failed, "c": Blocked, "z": Succeeded, "d": Cancelled}, statuses(results))
	require.Equal(t, []string{"b"}, failedSteps(err))
	left, ok := errors.AsType[*CancelError](err)
	require.True(t, ok)
	require.Equal(t, []Key{key("d")}, left.Interrupted)
	require.Contains(t, panicOf(func() { Optional(a) }), "test/a made optional after the run began")
}
