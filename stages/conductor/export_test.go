package conductor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Refused conducts a workflow that is refused before anything is asked of the engine.
func Refused(t *testing.T, w stages.Workflow, change func(*Options)) error {
	t.Helper()
	c, e := conducted(t, nil)
	change(&c.opts)
	c, err := New(c.opts)
	require.NoError(t, err)
	record, err := c.Conduct(t.Context(), w)
	require.Nil(t, record)
	require.Empty(t, e.all())
	return err
}

// Replay carries a workflow out after its earlier results were verified, on an engine
// that has no answer for anything. It also returns the request that the run makes to a
// step with an input.
func Replay(t *testing.T, w stages.Workflow, run string, change func(*Options), found contract.Verified) ([]pipeline.Result, func(contract.Spec, any) contract.Request) {
	t.Helper()
	c, e := conducted(t, nil)
	change(&c.opts)
	c, err := New(c.opts)
	require.NoError(t, err)
	steps := c.runner(run, nil)
	steps.cached = found.Steps
	g, err := stages.Wire(w, c.inputs, steps, nil)
	require.NoError(t, err)
	results, err := g.Pipeline.Run(t.Context(), pipeline.Options{})
	require.NoError(t, err)
	require.Empty(t, e.all())
	return results, func(s contract.Spec, in any) contract.Request {
		req, err := steps.requests.Of(s, in)
		require.NoError(t, err)
		return req
	}
}
