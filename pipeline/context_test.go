package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/slipway-sh/slipway/pipeline"
	"github.com/stretchr/testify/require"
)

type valueKey struct{}

// TestContext_endsWithTheStep: whether or not anybody has asked for Done, and what
// was made from the context ends too.
func TestContext_endsWithTheStep(t *testing.T) {
	for name, during := range map[string]func(context.Context) context.Context{
		"unused":         func(ctx context.Context) context.Context { return ctx },
		"asked for Done": func(ctx context.Context) context.Context { ctx.Done(); return ctx },
		"value":          func(ctx context.Context) context.Context { return context.WithValue(ctx, valueKey{}, 1) },
		"child": func(ctx context.Context) context.Context {
			own, cancel := context.WithCancel(ctx)
			_ = cancel
			return own
		},
		"child's deadline": func(ctx context.Context) context.Context {
			own, cancel := context.WithTimeout(ctx, time.Hour)
			_ = cancel
			return own
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // which fails on goroutines that wait for ever
				var p Pipeline
				var saved context.Context
				Add(&p, key("a"), func(ctx context.Context) (int, error) {
					require.NoError(t, ctx.Err())
					saved = during(ctx)
					require.NoError(t, saved.Err())
					return 0, nil
				})
				_, err := p.Run(t.Context(), Options{})
				require.NoError(t, err)
				require.Equal(t, context.Canceled, saved.Err())
				require.Equal(t, context.Canceled, context.Cause(saved))
				<-saved.Done()
				require.NoError(t, t.Context().Err())
			})
		})
	}
}

// TestContext_endsWithTheRun: with its cause, values and deadline.
func TestContext_endsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), valueKey{}, "value"))
		ctx, release := context.WithTimeout(ctx, time.Hour)
		defer release()
		why := errors.New("why")
		var p Pipeline
		Add(&p, key("a"), func(ctx context.Context) (int, error) {
			require.Equal(t, "value", ctx.Value(valueKey{}))
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, time.Hour, time.Until(deadline))
			child, stop := context.WithCancel(ctx)
			defer stop()
			called := make(chan struct{})
			context.AfterFunc(child, func() { close(called) })
			cancel(why)
			<-called
			<-ctx.Done()
			require.Equal(t, context.Canceled, ctx.Err())
			require.Equal(t, why, context.Cause(ctx))
			require.Equal(t, why, context.Cause(child))
			return 0, ctx.Err()
		})
		Add(&p, key("b"), func(ctx context.Context) (int, error) { return 0, nil })
		_, err := p.Run(ctx, Options{Parallel: 1})
		require.ErrorIs(t, err, why)
	})
}

// TestContext_children hang on the step's context without goroutines of their own.
func TestContext_children(t *testing.T) {
	var p Pipeline
	Add(&p, key("a"), func(ctx context.Context) (int, error) {
		before := runtime.NumGoroutine()
		for range 100 {
			_, cancel := context.WithCancel(ctx)
			defer cancel()
		}
		require.Less(t, runtime.NumGoroutine(), before+50)
		return 0, nil
	})
	_, err := p.Run(t.Context(), Options{})
	require.NoError(t, err)
}
