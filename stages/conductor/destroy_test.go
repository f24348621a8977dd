package conductor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

// TestARemovalOnAnotherEngineIsRefused: the state, which others share, would go,
// and the cluster stay.
func TestARemovalOnAnotherEngineIsRefused(t *testing.T) {
	c, e := conducted(t, map[string]any{`"state","show"`: `{"cluster":true,"here":false}`})
	c.opts.State.URL = "s3://bucket"
	_, err := c.Conduct(t.Context(), Workflow{Name: config.Destroy, Removes: true, Wire: func(*Graph) error { return nil }})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeNotThere})
	require.ErrorContains(t, err, "on another engine")
	require.NotContains(t, e.all(), "purge")
	require.NotContains(t, e.all(), "slipway-node-")

	c, _ = conducted(t, map[string]any{`"state","show"`: `{"cluster":true,"here":true}`})
	c.opts.State.URL = "s3://bucket"
	require.NoError(t, c.here(t.Context()))
	c, e = conducted(t, nil)
	require.NoError(t, c.here(t.Context()), "the volume is the state")
	require.Empty(t, e.all())
}
