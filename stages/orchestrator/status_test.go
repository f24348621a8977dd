package orchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestTheStatusOfAllApplications: those of others, too, but not the root, and the cause for
// what is not well.
func TestTheStatusOfAllApplications(t *testing.T) {
	api, _ := withArgo(t)
	env := published(t, api.URL, "")
	none, err := runStatus(t.Context(), env, contract.Nothing{})
	require.NoError(t, err)
	require.NotNil(t, none.Apps)
	require.Empty(t, none.Apps)

	const well = "status: {sync: {status: Synced, revision: abc}, health: {status: Healthy}, reconciledAt: '2026-01-02T03:04:05Z'}"
	api.Set(t, atRoot, "{metadata: {name: root, namespace: cd, labels: {"+kube.DeploymentLabel+": demo}}, "+well+"}")
	api.Set(t, atWeb, "{metadata: {name: web, namespace: cd, annotations: {argocd.argoproj.io/sync-wave: '2'}}, "+well+"}")
	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/team/applications/root", "{metadata: {name: root, namespace: team}, "+well+"}")
	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/api", "{metadata: {name: api, namespace: cd}, status: {sync: {status: Unknown}, health: {status: Healthy}, conditions: [{type: ComparisonError, message: no such chart}]}}")
	out, err := runStatus(t.Context(), env, contract.Nothing{})
	require.NoError(t, err)
	require.Equal(t, []string{"cd/api", "team/root", "cd/web"}, names(out), "by wave")
	require.Contains(t, out.Apps[0].Cause, "no such chart")
	require.Empty(t, out.Apps[1].Cause)
	require.Empty(t, api.Writes())
}

func names(apps contract.Apps) []string {
	var out []string
	for _, a := range apps.Apps {
		out = append(out, a.Namespace+"/"+a.Name)
	}
	return out
}
