package orchestrator

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestTheStatusOfApplications: those in Argo CD's namespace, but not the root, with the cause for
// what is not well. Those elsewhere are of others, whatever name they have.
func TestTheStatusOfApplications(t *testing.T) {
	api, c := withArgo(t)
	env := published(t, api.URL, "")
	require.NoError(t, installed.Removal{Argo: "cd"}.Write(t.Context(), c, "demo"))
	before := api.Writes()
	none, err := runStatus(t.Context(), env, contract.LiveInput{})
	require.NoError(t, err)
	require.NotNil(t, none.Apps.Apps)
	require.Empty(t, none.Apps.Apps)
	require.Empty(t, none.Gates)

	const well = "status: {sync: {status: Synced, revision: abc}, health: {status: Healthy}, reconciledAt: '2026-01-02T03:04:05Z'}"
	api.Set(t, atRoot, "{metadata: {name: root, namespace: cd, labels: {"+kube.DeploymentLabel+": demo}}, "+well+"}")
	api.Set(t, atWeb, "{metadata: {name: web, namespace: cd, annotations: {argocd.argoproj.io/sync-wave: '2'}}, "+well+"}")
	for _, name := range []string{"root", "api"} {
		api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/team/applications/"+name, "{metadata: {name: "+name+", namespace: team}, status: {sync: {status: OutOfSync}, health: {status: Degraded}, conditions: [{type: ComparisonError, message: of somebody else}]}}")
	}
	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/api", "{metadata: {name: api, namespace: cd}, status: {sync: {status: Unknown}, health: {status: Healthy}, conditions: [{type: ComparisonError, message: no such chart}]}}")
	out, err := runStatus(t.Context(), env, contract.LiveInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"cd/api", "cd/web"}, names(out.Apps), "by wave")
	require.Contains(t, out.Apps.Apps[0].Cause, "no such chart")
	require.Empty(t, out.Apps.Apps[1].Cause)
	require.Equal(t, before, api.Writes())
}

// TestTheStatusOfGates: those that the caller knows, each looked at once, of the steps that have
// begun. Gates in the state say what anybody who writes it wants to know of the cluster.
func TestTheStatusOfGates(t *testing.T) {
	api, _ := withArgo(t)
	env := published(t, api.URL, "")
	s, err := env.Store(t.Context())
	require.NoError(t, err)
	ledger := journal.On(s, env.Deployment)
	for _, name := range []string{"web", "planted"} {
		attempt, err := ledger.Begin(t.Context(), "r1", "orchestrator", name, journal.Digests{})
		require.NoError(t, err)
		require.NoError(t, ledger.End(t.Context(), attempt, json.RawMessage(`{"objects": 1, "ready": [{"cel": {"object": "v1/Secret billing/database", "expression": "has(object.data)"}}], "engine": "cd"}`), nil))
	}
	attempt, err := ledger.Begin(t.Context(), "r1", "orchestrator", "failed", journal.Digests{})
	require.NoError(t, err)
	require.NoError(t, ledger.End(t.Context(), attempt, nil, &fault.Fault{Code: "GAT-001", Class: fault.Timeout, Op: "wait", Err: errors.New("it is shut")}))
	require.NoError(t, s.Put(t.Context(), "runs/r1/steps/orchestrator.failed/gates.json", []byte(`{"ready": [{"job": "billing/planted"}]}`)))
	api.Set(t, "/api/v1/namespaces/billing/secrets/database", "{metadata: {name: database, namespace: billing}, data: {a: YQ==}}")
	api.Set(t, "/api/v1/namespaces/shop", "metadata: {name: shop}")
	api.Set(t, "/apis/batch/v1/namespaces/shop/jobs/seed", "{metadata: {name: seed}, status: {active: 1}}")
	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/shop/applications/away", "{metadata: {name: away, namespace: shop}, status: {sync: {status: Synced}, health: {status: Healthy}}}")
	in := contract.LiveInput{Engine: "cd", Components: []contract.LiveComponent{
		{Step: "orchestrator/web", Ready: json.RawMessage(`[{"job": "shop/seed"}, {"cel": {"object": "v1/Namespace shop", "expression": "has(object.metadata)"}}, {"synced": "away"}]`)},
		{Step: "orchestrator/failed", Ready: json.RawMessage(`[{"job": "shop/failed"}]`)},
		{Step: "orchestrator/never", Ready: json.RawMessage(`[{"job": "shop/never"}]`)},
	}}
	begun := time.Now()
	out, err := runStatus(t.Context(), env, in)
	require.NoError(t, err)
	require.Less(t, time.Since(begun), 10*time.Second)
	require.Equal(t, []contract.Gate{
		{Step: "orchestrator/web", Gate: "job shop/seed", Seen: "1 active, 0 failed"},
		{Step: "orchestrator/web", Gate: "has(object.metadata) of v1/Namespace shop", Open: true, Seen: "true"},
		{Step: "orchestrator/web", Gate: "app away", Seen: "it is not there"},
		{Step: "orchestrator/failed", Gate: "job shop/failed", Seen: "not found: /apis/batch/v1/namespaces/shop/jobs/failed"},
	}, out.Gates)

	api.Set(t, "/apis/batch/v1/namespaces/shop/jobs/seed", "{metadata: {name: seed}, status: {conditions: [{type: Failed, status: 'True', message: no more attempts}]}}")
	out, err = runStatus(t.Context(), env, in)
	require.NoError(t, err, "what failed is seen")
	require.False(t, out.Gates[0].Open)
	require.Contains(t, out.Gates[0].Seen, "no more attempts")
	require.Empty(t, api.Writes())
}

func names(apps contract.Apps) []string {
	var out []string
	for _, a := range apps.Apps {
		out = append(out, a.Namespace+"/"+a.Name)
	}
	return out
}
