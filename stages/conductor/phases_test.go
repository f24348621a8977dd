package conductor

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// inPhases is a release with phases, of an install and of a removal.
func inPhases(t *testing.T) *platform.Release {
	t.Helper()
	r, err := platform.Load(fstest.MapFS{"web.yaml": {Data: []byte("{}")}, platform.File: {Data: []byte(`
apiVersion: slipway/v2
name: shop
version: 1.0.0
namespaces: [{name: shop}]
components:
  - {name: gitea, kind: manifests, path: web.yaml, namespace: shop}
  - {name: web, kind: manifests, path: web.yaml, namespace: shop}
phases:
  - {name: User Approval, approval: true}
  - {name: Setup, steps: [infrastructure/preflight], components: [web, gitea]}
  - {name: Removal, steps: [infrastructure/node-remove]}
`)}})
	require.NoError(t, err)
	return r
}

// TestPhasesHaveTheStepsOfTheirComponents, wherever these are in the graph.
func TestPhasesHaveTheStepsOfTheirComponents(t *testing.T) {
	node := func(stage, name string) pipeline.Node {
		return pipeline.Node{Key: pipeline.Key{Stage: stage, Name: name}}
	}
	got := stages.PhasesOf(inPhases(t), []pipeline.Node{
		node(contract.StageInfrastructure, "web"), node(contract.StagePreOrchestrator, "gitea"), node(contract.StageOrchestrator, "gitea"), node(contract.StageTest, "web"),
	})
	require.Equal(t, []report.Phase{
		{Name: "User Approval", Approval: true},
		{Name: "Setup", Steps: []string{"infrastructure/preflight", "preorchestrator/gitea", "orchestrator/gitea"}},
		{Name: "Removal", Steps: []string{"infrastructure/node-remove"}},
	}, got)
	require.Empty(t, stages.PhasesOf(&platform.Release{}, nil))
}

// TestARunRecordsItsPhases, and who has agreed to it.
func TestARunRecordsItsPhases(t *testing.T) {
	c, e := conducted(t, map[string]any{
		`"slipway","step","infrastructure/preflight"`: `{"status":"succeeded","output":{}}`, `"slipway","state","keep"`: "{}",
	})
	c.opts.Release, c.opts.User, c.opts.Host = inPhases(t), "alice", "desk"
	c.Agreed(&report.Approval{How: report.ByYes, Answered: time.Now().UTC()})
	record, err := c.Conduct(t.Context(), stages.Workflow{Name: config.Install, Wire: func(g *stages.Graph) error {
		stages.Add(g, contract.PreflightStep(), func() contract.PreflightInput { return contract.PreflightInput{} })
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, "alice@desk", record.Approval.By)
	require.Equal(t, "Setup", record.Steps[0].Phase)
	require.Len(t, record.Phases, 3)
	require.Equal(t, []pipeline.Status{pipeline.Succeeded, pipeline.Succeeded, ""}, []pipeline.Status{record.Phases[0].Status, record.Phases[1].Status, record.Phases[2].Status})
	require.Contains(t, e.all(), `alice@desk`, "it is in the record that is written")
}

// TestARemovalHasThePhasesOfTheLastRun: it has no release.
func TestARemovalHasThePhasesOfTheLastRun(t *testing.T) {
	last, err := json.Marshal(contract.Opened{Phases: stages.PhasesOf(inPhases(t), nil)})
	require.NoError(t, err)
	for _, c := range []struct {
		opened string
		status map[string]pipeline.Status
	}{
		{string(last), map[string]pipeline.Status{"User Approval": pipeline.Skipped, "Setup": "", "Removal": pipeline.Succeeded}},
		{`{}`, map[string]pipeline.Status{}},
	} {
		conductor, e := conducted(t, map[string]any{`"slipway","state","open"`: c.opened, `"slipway","state","keep"`: "{}"})
		record, err := conductor.Conduct(t.Context(), stages.Workflow{Name: config.Destroy, Removes: true, Wire: func(g *stages.Graph) error {
			g.Action(contract.NodeRemoveKey())
			return nil
		}})
		require.NoError(t, err)
		got := map[string]pipeline.Status{}
		for _, p := range record.Phases {
			got[p.Name] = p.Status
		}
		require.Equal(t, c.status, got)
		require.Equal(t, len(got) > 0, strings.Contains(e.all(), "Removal"), "it is in the record that is written")
	}
}
