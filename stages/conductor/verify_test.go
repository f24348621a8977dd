package conductor

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages/contract"
)

// earlier answers for steps: those that are named do not hold any more.
type earlier struct {
	mu    sync.Mutex
	stale []string
	asked map[string]contract.Request
}

func (e *earlier) run(_ context.Context, req contract.Request) contract.Result {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked == nil {
		e.asked = map[string]contract.Request{}
	}
	e.asked[req.ID()] = req
	if slices.Contains(e.stale, req.ID()) {
		return contract.Result{Status: contract.Failed, Fault: &fault.Fault{Code: contract.CodeNotVerified, Err: errors.New("changed")}}
	}
	return contract.Result{Status: contract.Reused, Output: json.RawMessage("{}")}
}

func verifyAll(t *testing.T, e *earlier, change func(*contract.Plan)) contract.Verified {
	t.Helper()
	plan := contract.Plan{Run: "r2", Refs: map[string]string{"gitea": "x"}, Images: "sha256:1", Release: "sha256:2"}
	if change != nil {
		change(&plan)
	}
	release := &platform.Release{Version: "1.0.0"}
	got, err := Verify(t.Context(), plan, config.Default(), local.Provider{}, release, e.run, nil)
	require.NoError(t, err)
	return got
}

func TestAllEarlierResultsAreLookedAtAtOnce(t *testing.T) {
	e := &earlier{}
	got := verifyAll(t, e, nil)
	require.Equal(t, 16, got.Total, "all but the node and the look itself")
	require.Len(t, got.Steps, 16)
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
	for _, id := range []string{"preorchestrator/gitea", "preorchestrator/gitea-push", "orchestrator/publish", "orchestrator/sync", "postorchestrator/access"} {
		require.NotContains(t, got.Steps, id)
	}
	require.NotContains(t, e.asked, "orchestrator/publish")
	require.Contains(t, got.Steps, "preorchestrator/argocd")
	require.Len(t, got.Steps, 10)
}

func TestWhatNeedsAStepWithHooksIsNotLookedAt(t *testing.T) {
	e := &earlier{}
	got := verifyAll(t, e, func(p *contract.Plan) { p.Hooked = []string{"orchestrator/sync"} })
	require.Len(t, got.Steps, 14)
	require.NotContains(t, e.asked, "orchestrator/sync")
	require.NotContains(t, e.asked, "postorchestrator/access")
}

func TestASelectionLimitsWhatIsLookedAt(t *testing.T) {
	got := verifyAll(t, &earlier{}, func(p *contract.Plan) { p.Selection = pipeline.Select{To: []string{"infrastructure/cluster"}} })
	require.Equal(t, []string{"infrastructure/cluster", "infrastructure/preflight", "infrastructure/terraform"}, slices.Sorted(maps.Keys(got.Steps)))
}

func TestALookTellsOfTheStepsThatItLooksAt(t *testing.T) {
	told := map[string][]pipeline.Status{}
	observe := func(e pipeline.Event) {
		id := e.Result.String()
		told[id] = append(told[id], e.Status)
	}
	release := &platform.Release{Version: "1.0.0"}
	_, err := Verify(t.Context(), contract.Plan{Run: "r2"}, config.Default(), local.Provider{}, release, (&earlier{}).run, observe)
	require.NoError(t, err)
	require.Len(t, told, 16)
	require.NotContains(t, told, "infrastructure/node")
	require.NotContains(t, told, "infrastructure/verify")
	require.Equal(t, []pipeline.Status{pipeline.Running, pipeline.Reused}, told["orchestrator/sync"])
}

// A look costs a container, and is no use where hooks run around each step.
func TestWhenALookIsWorthwhile(t *testing.T) {
	for what, c := range map[string]struct {
		known  int
		hooked []string
		hold   int
	}{
		"a first run":             {worthwhile - 1, nil, 0},
		"hooks around each step":  {worthwhile, []string{pipeline.EveryStep}, 0},
		"an earlier run":          {worthwhile, nil, 1},
		"hooks around some steps": {worthwhile, []string{"orchestrator/sync"}, 1},
	} {
		conductor, e := conducted(t, map[string]any{"{contents}": `{"steps":{"infrastructure/terraform":{}},"total":16}`})
		conductor.opts.ReleaseDir, conductor.opts.Images.Manifests = conductor.opts.Client.Directory(), conductor.opts.Client.Directory()
		conductor.known, conductor.hooked = c.known, c.hooked
		var p pipeline.Pipeline
		look := conductor.addVerify(&p)
		_, err := p.Run(t.Context(), pipeline.Options{})
		require.NoError(t, err, what)
		require.Equal(t, c.hold, look.Value().Hold, what)
		require.Len(t, conductor.verified, c.hold, what)
		if c.hold == 0 {
			require.NotContains(t, e.all(), "withExec", what)
		}
	}
}

// What `slipway verify` says went wrong has its code in the run's error too.
func TestALookThatFailsTellsItsFault(t *testing.T) {
	f := &fault.Fault{Code: "PLT-001", Class: fault.Usage, Err: errors.New("no such release")}
	text, err := json.Marshal(f)
	require.NoError(t, err)
	c, e := conducted(t, map[string]any{"{contents}": "", "{stderr}": containers.FaultLine + string(text) + "\n"})
	e.exit = 2
	c.opts.ReleaseDir, c.opts.Images.Manifests = c.opts.Client.Directory(), c.opts.Client.Directory()
	_, err = c.verify(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: "PLT-001"})
	require.Equal(t, fault.Usage, fault.ClassOf(err))

	c, _ = conducted(t, map[string]any{"{contents}": "no JSON"})
	c.opts.ReleaseDir, c.opts.Images.Manifests = c.opts.Client.Directory(), c.opts.Client.Directory()
	_, err = c.verify(t.Context())
	require.ErrorContains(t, err, "decode the answer of [slipway verify")
}

// The conductor asks for each step the same as the look did: otherwise no result
// would be taken from it. This one has no engine in which a step could run.
func TestAConductorTakesWhatWasFoundToHold(t *testing.T) {
	provider := elsewhere{local.Provider{}}
	c := conductor(provider)
	c.run = "r2"
	c.place = providers.Deployment{Name: c.opts.Config.Global.Name, Scale: c.opts.Config.Global.Scale, Section: c.opts.Config.Section("local")}
	c.opts.Images.Refs, c.opts.Images.Digest, c.opts.ReleaseDigest = map[string]string{"gitea": "x"}, "sha256:1", "sha256:2"
	plan := contract.Plan{Run: "r2", Refs: c.opts.Images.Refs, Images: "sha256:1", Release: "sha256:2"}
	found, err := Verify(t.Context(), plan, c.opts.Config, provider, c.opts.Release, (&earlier{}).run, nil)
	require.NoError(t, err)
	encoded, err := json.Marshal(found)
	require.NoError(t, err)
	found = contract.Verified{}
	require.NoError(t, json.Unmarshal(encoded, &found))
	c.verified = found.Steps

	var p pipeline.Pipeline
	_, err = c.install(&p)
	require.NoError(t, err)
	results, err := p.Run(t.Context(), pipeline.Options{})
	require.NoError(t, err)
	require.Len(t, results, 16)
	for _, r := range results {
		if r.Key != contract.VerifySpec().Key {
			require.Equal(t, contract.Reused, r.Status, r.Key)
		}
	}

	req, err := c.request(t.Context(), contract.ClusterStep().Spec, contract.ClusterInput{APIEndpoint: "https://moved:6443"})
	require.NoError(t, err)
	require.False(t, found.Steps["infrastructure/cluster"].For(req), "the input is another one")
}

func TestALookThatIsInterruptedFindsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	run := func(context.Context, contract.Request) contract.Result {
		cancel()
		return contract.Result{Status: contract.Reused, Output: json.RawMessage("{}")}
	}
	got, err := Verify(ctx, contract.Plan{}, config.Default(), local.Provider{}, &platform.Release{}, run, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, got.Steps)
}
