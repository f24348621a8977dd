package conductor_test

import (
	"context"
	"encoding/json"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	releases "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// elsewhere is a provider whose cluster Slipway does not run.
type elsewhere struct{ providers.Provider }

// Cluster returns such a cluster.
func (elsewhere) Cluster(providers.Deployment) (providers.Cluster, error) {
	return providers.Cluster{}, nil
}

func TestASelectionWithoutAStepLeavesNoRecord(t *testing.T) {
	err := conductor.Refused(t, stages.Destroy(), func(o *conductor.Options) { o.Until = []string{"nosuch"} })
	require.ErrorIs(t, err, &fault.Fault{Code: pipeline.CodeSelection})
}

// The conductor makes to each step the request that was verified: otherwise no result
// would be taken from there.
func TestAConductorTakesWhatWasFoundToHold(t *testing.T) {
	files, err := releases.Release("1.0.0")
	require.NoError(t, err)
	release, err := platform.Load(files)
	require.NoError(t, err)
	cfg := config.Default()
	cfg.Provider = local.Name
	refs := map[string]string{"gitea": "x"}
	plan := contract.PlanRequest{
		Workflow: config.Install, Run: "r2", Inputs: contract.Inputs{
			Images: refs, ImagesDigest: "sha256:1", ReleaseDigest: "sha256:2", Tools: map[string]string{"helm": "4"}, UserSecrets: []string{"smtp"},
		},
	}
	plan.Environment, err = stages.EnvironmentOf(elsewhere{local.Provider{}}, providers.Deployment{Name: cfg.Global.Name, Scale: cfg.Global.Scale})
	require.NoError(t, err)
	text, err := json.Marshal(plan)
	require.NoError(t, err)
	plan = contract.PlanRequest{}
	require.NoError(t, json.Unmarshal(text, &plan))
	plan.Config, plan.Release = cfg, release
	reused := func(context.Context, contract.Request) contract.Result {
		return contract.Result{Status: contract.Reused, Output: json.RawMessage("{}")}
	}
	found, err := stages.Verify(t.Context(), stages.Install(), plan, reused)
	require.NoError(t, err)
	encoded, err := json.Marshal(found)
	require.NoError(t, err)
	found = contract.Verified{}
	require.NoError(t, json.Unmarshal(encoded, &found))

	results, request := conductor.Replay(t, stages.Install(), "r2", func(o *conductor.Options) {
		o.Config, o.Provider, o.Release, o.ReleaseDigest = cfg, elsewhere{local.Provider{}}, release, "sha256:2"
		o.Images.Refs, o.Images.Digest, o.Tools = refs, "sha256:1", plan.Tools
		o.UserSecrets = map[string]*dagger.Secret{"smtp": nil}
	}, found)
	nodes, err := stages.Nodes(stages.Install(), plan.Inputs)
	require.NoError(t, err)
	require.Len(t, results, len(nodes))
	for _, r := range results {
		if r.Key != contract.CheckEarlierSpec().Key {
			require.Equal(t, contract.Reused, r.Status, r.Key)
		}
	}
	req := request(contract.ClusterStep().Spec, contract.ClusterInput{APIEndpoint: "https://moved:6443"})
	require.False(t, found.Steps["infrastructure/cluster"].For(req), "the input is another one")
}
