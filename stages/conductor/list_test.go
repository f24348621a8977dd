package conductor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestTheLineOfADeployment says how its last run left it, and what was installed to the end.
func TestTheLineOfADeployment(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stored := &contract.Stored{Cluster: true, Platform: "1.0.0", Record: &report.Run{ID: "r1", Workflow: "install", Outcome: report.Failed, Platform: report.Platform{Name: "shop", Version: "1.1.0"}}}
	require.Equal(t, contract.DeploymentSummary{Deployment: "blue", Release: "shop", Installed: "1.0.0", State: contract.Failure, Run: "r1", Workflow: "install", Created: created}, contract.SummaryOf("blue", created, stored, false))
}

// TestTheDeploymentsOfAnEngineAreListed out of their volumes, whose names an index has.
func TestTheDeploymentsOfAnEngineAreListed(t *testing.T) {
	c, e := conducted(t, map[string]any{`"state","index"`: `["blue","green","../x"]`, `"state","list"`: `[{"deployment":"blue"},{"deployment":"green","problem":"it is damaged"}]`})
	all, err := c.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []contract.DeploymentSummary{
		{Deployment: "blue"}, {Deployment: "green", Problem: "it is damaged"},
	}, all)
	asked := e.all()
	for _, volume := range []string{"slipway-deployments", "slipway-state-blue", "slipway-state-green"} {
		require.Contains(t, asked, `"`+volume+`"`)
	}
	require.NotContains(t, asked, "../x", "what is no name is no volume")
	require.NotContains(t, asked, "SLIPWAY_STATE_URL")
}

// TestTheDeploymentsOfABucketAreListed: the bucket is asked, below no deployment's name.
func TestTheDeploymentsOfABucketAreListed(t *testing.T) {
	c, e := conducted(t, map[string]any{`"state","list"`: "[]"})
	c.opts.State = State{URL: "s3://bucket?prefix=slipway", Bucket: "s3://bucket"}
	c, err := New(c.opts)
	require.NoError(t, err)
	all, err := c.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
	require.Contains(t, e.all(), `value:"s3://bucket"`)
	require.NotContains(t, e.all(), "slipway-deployments")
}

// TestARunEntersTheEnginesIndex, and a removal leaves it; with the state in a bucket there is
// nothing to enter.
func TestARunEntersTheEnginesIndex(t *testing.T) {
	const entry = `\"entry\":\"/slipway/deployments/slipway\"`
	for _, url := range []string{"", "s3://bucket"} {
		c, e := conducted(t, map[string]any{`"slipway","state","keep"`: "{}"})
		c.opts.State.URL = url
		c, err := New(c.opts)
		require.NoError(t, err)
		_, err = c.Conduct(t.Context(), stages.Workflow{Name: config.Destroy, Removes: true, Wire: func(g *stages.Graph) error {
			g.Action(contract.NodeRemoveKey())
			return nil
		}})
		require.NoError(t, err)
		for _, command := range []string{`"state","open"`, `"state","purge"`} {
			entered := slices.ContainsFunc(e.asked, func(query string) bool { return strings.Contains(query, command) && strings.Contains(query, entry) })
			require.Equal(t, url == "", entered, "%s %s", command, url)
		}
		require.Equal(t, url == "", strings.Contains(e.all(), "slipway-deployments"))
	}
}
