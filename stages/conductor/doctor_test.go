package conductor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
)

const (
	checksMachine = `"slipway","step","infrastructure/preflight","--state","/slipway/scratch"`
	checksCluster = `"slipway","step","infrastructure/cluster-preflight","--state","/slipway/scratch"`
)

// TestACheckupRecordsNothing: its step has a state that goes with its container, and no bucket.
func TestACheckupRecordsNothing(t *testing.T) {
	c, e := conducted(t, map[string]any{
		`"state","show"`: `{}`, checksMachine: `{"status":"succeeded","output":{"memoryBytes":4294967296,"cpus":2}}`,
	})
	c.opts.State = State{URL: "s3://bucket?prefix=slipway"}
	c, err := New(c.opts)
	require.NoError(t, err)
	out, err := c.Checkup(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, out.Machine.CPUs)
	require.Nil(t, out.Cluster)
	for _, query := range e.asked {
		if innermost(map[string]any{checksMachine: nil}, query) != "" {
			require.NotContains(t, query, "SLIPWAY_STATE_URL")
		}
	}
	require.NotContains(t, e.all(), "asService", "no cluster is started")
	for _, text := range e.taken {
		require.NotContains(t, text, `"locked"`)
	}
}

// TestACheckupReportsAllThatIsUnmet, with no log that nobody finds.
func TestACheckupReportsAllThatIsUnmet(t *testing.T) {
	unmet := func(what string) string {
		return `{"status":"failed","fault":{"code":"INF-008","class":3,"op":"` + what + `","message":"unmet","log":"steps/x/log.txt"}}`
	}
	c, _ := conducted(t, map[string]any{`"state","show"`: `{"cluster":true}`, checksMachine: unmet("check the machine"), checksCluster: unmet("check the cluster")})
	c.access, c.inputs.Environment.External = nil, &providers.ExternalCluster{}
	out, err := c.Checkup(t.Context())
	require.ErrorContains(t, err, "check the machine")
	require.ErrorContains(t, err, "check the cluster")
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Empty(t, f.Log)
	require.Equal(t, Checkup{}, out)
}
