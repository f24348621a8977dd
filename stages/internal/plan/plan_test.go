package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/plan"
)

func TestSame(t *testing.T) {
	object := func(version, replicas, available int64) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"name": "web", "resourceVersion": string(rune('0' + version)), "generation": version},
			"spec":     map[string]any{"replicas": replicas},
			"status":   map[string]any{"availableReplicas": available},
		}
	}
	require.True(t, plan.Same(object(1, 2, 0), object(2, 2, 1)), "a pod became ready meanwhile")
	require.False(t, plan.Same(object(1, 2, 0), object(1, 3, 0)))
}

// TestWhatAStepWouldChange: the first change is named, and a run knows of no plan.
func TestWhatAStepWouldChange(t *testing.T) {
	var none *plan.Step
	none.Change("nothing")
	require.True(t, none.Waits())
	require.False(t, none.Previews())

	p := plan.Verify("a/b")
	is := map[string]any{"metadata": map[string]any{"uid": "u", "generation": int64(1)}, "status": "x"}
	p.Put("/o", is, map[string]any{"metadata": map[string]any{"uid": "u", "generation": int64(2)}}, "")
	require.NoError(t, p.Err())
	require.True(t, p.Waits())
	p.Put("/o", is, nil, "")
	p.Change("write another")
	require.ErrorIs(t, p.Err(), plan.ErrChange)
	require.ErrorContains(t, p.Err(), "write /o")
	require.False(t, p.Waits(), "only a run brings about what it would wait for")
	require.False(t, new(plan.Plan).Of("a/b").Waits())
}
