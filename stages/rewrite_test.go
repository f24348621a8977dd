package stages_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// What the cluster does not map by itself, the steps of components rewrite; what is asked
// for before a run is what the objects name.
func TestComponentsGetTheReferencesToRewrite(t *testing.T) {
	rewrite := map[string]string{"docker.io/library/redis:8": "registry.example.com/redis@sha256:00"}
	input := func(plan func(*contract.PlanRequest)) (in contract.ComponentInput) {
		e := &earlier{}
		verifyAll(t, e, plan)
		require.NoError(t, json.Unmarshal(e.asked["preorchestrator/argocd"].Input, &in))
		return in
	}
	require.Empty(t, input(nil).Rewrite)
	require.Equal(t, rewrite, input(func(p *contract.PlanRequest) { p.Rewrite = rewrite }).Rewrite)

	s, err := stages.Rendering(contract.Inputs{Config: config.Default(), Release: reference(t)}, nil)
	require.NoError(t, err)
	require.Len(t, s.Components, 2, "gitea and argocd")
	require.NotNil(t, s.Apps)
	require.Contains(t, s.Apps.Disabled, "toolbox")
}
