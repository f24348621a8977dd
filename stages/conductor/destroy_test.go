package conductor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

// TestARemovalOnAnotherEngineIsRefused: the state, which others share, would go,
// and the cluster stay. Tests would start a cluster with nothing in it.
func TestARemovalOnAnotherEngineIsRefused(t *testing.T) {
	c, e := conducted(t, map[string]any{`"state","show"`: `{"cluster":true,"here":false}`})
	c.opts.State.URL = "s3://bucket"
	for _, w := range []Workflow{{Name: config.Destroy, Removes: true}, {Name: config.Test, Tries: true}} {
		w.Wire = func(*Graph) error { return nil }
		_, err := c.Conduct(t.Context(), w)
		require.ErrorIs(t, err, &fault.Fault{Code: CodeNotThere})
		require.ErrorContains(t, err, "on another engine")
	}
	require.NotContains(t, e.all(), "purge")
	require.NotContains(t, e.all(), `"wipe"`)

	c, _ = conducted(t, map[string]any{`"state","show"`: `{"cluster":true,"here":true}`})
	c.opts.State.URL = "s3://bucket"
	require.NoError(t, c.here(t.Context(), Workflow{Removes: true}))
	c, e = conducted(t, nil)
	require.NoError(t, c.here(t.Context(), Workflow{Removes: true}), "the volume is the state")
	require.Empty(t, e.all())
}
