package stages_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// earlier answers for steps: those that are named do not hold any more.
type earlier struct {
	mu    sync.Mutex
	stale []string
	asked map[string]contract.Request

	outputs map[string]string // by step; {} of others
}

func (e *earlier) run(_ context.Context, req contract.Request) contract.Result {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked == nil {
		e.asked = map[string]contract.Request{}
	}
	e.asked[req.ID()] = req
	if slices.Contains(e.stale, req.ID()) {
		return contract.Result{Status: contract.Failed, Fault: &fault.Fault{Code: "STP-001", Err: errors.New("changed")}}
	}
	return contract.Result{Status: contract.Reused, Output: json.RawMessage(cmp.Or(e.outputs[req.ID()], "{}"))}
}

func verifyAll(t *testing.T, e *earlier, change func(*contract.PlanRequest)) contract.Verified {
	t.Helper()
	plan := contract.PlanRequest{Run: "r2", Inputs: contract.Inputs{
		Config: config.Default(), Release: reference(t), ReleaseDigest: "sha256:2", Environment: localEnvironment(t, config.Default()),
		Images: map[string]string{"gitea": "x"}, ImagesDigest: "sha256:1",
	}}
	if change != nil {
		change(&plan)
	}
	got, err := stages.Verify(t.Context(), stages.Install(), plan, e.run)
	require.NoError(t, err)
	return got
}

// looked are the steps of an install that are looked at, all but the node and the look itself,
// without a step and those that wait for it.
func looked(t *testing.T, without string) (names []string) {
	t.Helper()
	g := needs(t, stages.Install(), local.Provider{})
	for name := range g {
		if name != contract.NodeKey().String() && name != contract.CheckEarlierSpec().String() && name != without && !waits(g, name, without) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestAllEarlierResultsAreLookedAtAtOnce(t *testing.T) {
	e := &earlier{}
	got := verifyAll(t, e, nil)
	require.Equal(t, looked(t, ""), slices.Sorted(maps.Keys(got.Steps)))
	require.Equal(t, slices.Sorted(maps.Keys(e.asked)), slices.Sorted(maps.Keys(got.Steps)))
	for id, req := range e.asked {
		require.True(t, req.VerifyOnly, id)
		require.Equal(t, id != "infrastructure/preflight", req.Locked, id)
		require.Equal(t, "r2", req.Run)
	}
}

func TestWhatNeedsAStepThatDoesNotHoldIsNotLookedAt(t *testing.T) {
	e := &earlier{stale: []string{"preorchestrator/gitea"}}
	got := verifyAll(t, e, nil)
	require.Equal(t, looked(t, "preorchestrator/gitea"), slices.Sorted(maps.Keys(got.Steps)))
	require.NotContains(t, e.asked, "orchestrator/publish")
	require.Contains(t, got.Steps, "preorchestrator/argocd")
}

func TestWhatNeedsAStepWithHooksIsNotLookedAt(t *testing.T) {
	e := &earlier{}
	got := verifyAll(t, e, func(p *contract.PlanRequest) { p.Hooked = []string{"orchestrator/sync"} })
	require.Equal(t, looked(t, "orchestrator/sync"), slices.Sorted(maps.Keys(got.Steps)))
	require.NotContains(t, e.asked, "orchestrator/sync")
	require.NotContains(t, e.asked, "postorchestrator/access")
}

func TestASelectionLimitsWhatIsLookedAt(t *testing.T) {
	got := verifyAll(t, &earlier{}, func(p *contract.PlanRequest) {
		p.Until = []string{"infrastructure/cluster"}
	})
	require.Equal(t, []string{"infrastructure/cluster", "infrastructure/preflight", "infrastructure/terraform"}, slices.Sorted(maps.Keys(got.Steps)))
}

func TestALookThatIsInterruptedFindsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	run := func(context.Context, contract.Request) contract.Result {
		cancel()
		return contract.Result{Status: contract.Reused, Output: json.RawMessage("{}")}
	}
	got, err := stages.Verify(ctx, stages.Install(), contract.PlanRequest{Inputs: contract.Inputs{Config: config.Default(), Release: reference(t), Environment: localEnvironment(t, config.Default())}}, run)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, got.Steps)
}
