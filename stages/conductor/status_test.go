package conductor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestAClusterThatIsNotOnThisEngine, whose state is in a bucket: what only reads shows what the
// last run saw, an install may be planned, and what needs the cluster is refused.
func TestAClusterThatIsNotOnThisEngine(t *testing.T) {
	c, e := conducted(t, map[string]any{`"state","show"`: `{"cluster":true,"lost":true,"platform":"1.0.0","record":{"version":1,"id":"r1","workflow":"install","outcome":"succeeded"}}`, `"state","kubeconfig"`: secretText(t, "k")})
	c.opts.State.URL = "s3://bucket"
	c, err := New(c.opts)
	require.NoError(t, err)
	s, err := c.Status(t.Context(), true)
	require.NoError(t, err)
	require.True(t, s.Elsewhere)
	require.Equal(t, contract.Success, s.State)
	var text strings.Builder
	require.NoError(t, s.Text(&text))
	require.Contains(t, text.String(), "\nThe cluster is not on this engine: the applications are as the last run saw them.\n")
	_, err = c.Kubeconfig(t.Context(), "")
	require.NoError(t, err, "it is that of the other engine")
	there, err := c.hasCluster(t.Context(), stages.Workflow{Name: config.Install})
	require.NoError(t, err)
	require.False(t, there)

	_, err = c.Installed(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: codeLost})
	err = c.Up(t.Context(), false, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: codeLost})
	require.ErrorContains(t, err, "the cluster of deployment slipway is not on this engine: another engine has it, or this one has removed its volume; its last run was install r1")
	require.NotContains(t, e.all(), "asService")
}

// TestOnlyGatesOfTheReleaseAtHandAreLookedAt, and only if it is the last run's: the state chooses
// neither a gate nor an object.
func TestOnlyGatesOfTheReleaseAtHandAreLookedAt(t *testing.T) {
	record := &report.Run{
		Platform: report.Platform{Name: "shop\x1b", Version: "1.0.0", Digest: "sha256:1"},
		Steps:    []report.Step{{Stage: "orchestrator", Step: "web"}, {Stage: "orchestrator", Step: "planted"}, {Stage: "postorchestrator", Step: "web"}},
	}
	c, _ := conducted(t, nil)
	var said []string
	c.opts.Warn = func(text string) { said = append(said, text) }
	c.opts.ReleaseDigest, c.opts.Release = "sha256:1", &platform.Release{Components: []platform.Component{
		{Name: "web", Ready: []platform.Await{{Job: "shop/seed"}}}, {Name: "later", Ready: []platform.Await{{Job: "shop/later"}}},
	}}
	in, err := c.live(record)
	require.NoError(t, err)
	require.Len(t, in.Components, 1)
	require.Equal(t, "orchestrator/web", in.Components[0].Step)
	require.Contains(t, string(in.Components[0].Ready), "shop/seed")
	require.Empty(t, said)

	c.opts.ReleaseDigest = "sha256:2"
	in, err = c.live(record)
	require.NoError(t, err)
	require.Empty(t, in.Components)
	require.Len(t, said, 1)
	require.Contains(t, said[0], "platform release shop 1.0.0, sha256:1, which is not the one at hand")
	c.opts.Release = nil
	in, err = c.live(record)
	require.NoError(t, err)
	require.Empty(t, in.Components)
}
