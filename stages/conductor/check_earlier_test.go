package conductor

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// stepRunner runs steps on an engine that has these answers.
func stepRunner(t *testing.T, answers map[string]any) (*containerRunner, *engine) {
	t.Helper()
	c, e := conducted(t, answers)
	c.opts.ReleaseDir, c.opts.Images.Manifests = c.opts.Client.Directory(), c.opts.Client.Directory()
	return c.runner("r1", nil), e
}

// A look costs a container, and is no use where hooks run around each step.
func TestWhenEarlierResultsAreVerifiedAtOnce(t *testing.T) {
	for what, c := range map[string]struct {
		known  int
		hooked []string
		hold   int
	}{
		"a first run":             {verifyFrom - 1, nil, 0},
		"hooks around each step":  {verifyFrom, []string{pipeline.EveryStep}, 0},
		"an earlier run":          {verifyFrom, nil, 1},
		"hooks around some steps": {verifyFrom, []string{"orchestrator/sync"}, 1},
	} {
		steps, e := stepRunner(t, map[string]any{"{export": `{"steps":{"infrastructure/terraform":{}}}`})
		steps.known = c.known
		require.NoError(t, steps.verifyAll(t.Context(), contract.PlanRequest{Hooked: c.hooked}), what)
		require.Len(t, steps.cached, c.hold, what)
		if c.hold == 0 {
			require.NotContains(t, e.all(), "withExec", what)
		}
	}
}

// What `slipway dry-run` says went wrong has its code in the run's error too.
func TestALookThatFailsTellsItsFault(t *testing.T) {
	f := &fault.Fault{Code: "PLT-001", Class: fault.Usage, Err: errors.New("no such release")}
	text, err := json.Marshal(f)
	require.NoError(t, err)
	c, e := stepRunner(t, map[string]any{"{export": "", "{stderr}": containers.FaultLine + string(text) + "\n"})
	e.exit = 2
	c.known = verifyFrom
	err = c.verifyAll(t.Context(), contract.PlanRequest{})
	require.ErrorIs(t, err, &fault.Fault{Code: "PLT-001"})
	require.Equal(t, fault.Usage, fault.ClassOf(err))

	c, _ = stepRunner(t, map[string]any{"{export": "no JSON"})
	c.known = verifyFrom
	err = c.verifyAll(t.Context(), contract.PlanRequest{})
	require.ErrorContains(t, err, "decode the result of [slipway dry-run")
}
