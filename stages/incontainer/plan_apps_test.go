package incontainer

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

// TestAPlanOfApps: what the tree makes is compared with what is there, and what it has no
// more is removed. A push moves every Application to its commit.
func TestAPlanOfApps(t *testing.T) {
	const apps = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/"
	const clone = "https://gitea.gitea.svc/slipway/platform.git"
	api := kubetest.Serve(t)
	api.Define("argoproj.io/v1alpha1", "Application", true)
	application := func(name, status string) string {
		return fmt.Sprintf("{metadata: {name: %s, namespace: argocd, labels: {slipway.sh/deployment: demo}}, spec: {source: {repoURL: %q, targetRevision: c1}}, status: {resources: %s}}", name, clone, status)
	}
	app := func(name string) string {
		return "{group: argoproj.io, kind: Application, namespace: argocd, name: " + name + "}"
	}
	api.Set(t, apps+"root", application("root", "["+app("web")+", "+app("old")+"]"))
	api.Set(t, apps+"root", "{apiVersion: argoproj.io/v1alpha1, kind: Application}")
	api.Set(t, apps+"web", application("web", "[{group: apps, kind: Deployment, namespace: shop, name: web}, {kind: Service, namespace: shop, name: former}, {kind: Service, namespace: shop, name: others}]"))
	api.Set(t, apps+"old", application("old", "[]"))
	api.Set(t, apps+"old", "metadata: {annotations: {argocd.argoproj.io/tracking-id: 'root:argoproj.io/Application:argocd/old'}}")
	api.Set(t, "/apis/apps/v1/namespaces/shop/deployments/web", "{metadata: {name: web, namespace: shop, annotations: {argocd.argoproj.io/tracking-id: mine}}, spec: {replicas: 1}}")
	api.Set(t, "/api/v1/namespaces/shop/services/former", "{metadata: {name: former, namespace: shop, annotations: {argocd.argoproj.io/tracking-id: 'web:/Service:shop/former'}}}")
	api.Set(t, "/api/v1/namespaces/shop/services/others", "{metadata: {name: others, namespace: shop}}")
	// What others say of themselves, as of the platform's tree.
	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/tenant/applications/forged", strings.ReplaceAll(application("forged", "[{kind: Service, namespace: shop, name: others}, {kind: Service, namespace: shop, name: former}]"), "argocd", "tenant"))

	files := os.DirFS("../../examples/platform/1.0.0")
	release, err := platform.Load(files)
	require.NoError(t, err)
	cfg := config.Default()
	cfg.Global.Name = "demo"
	environment, err := stages.EnvironmentOf(local.Provider{}, providers.Deployment{Name: "demo", Scale: cfg.Global.Scale})
	require.NoError(t, err)
	made := func(replicas int, git ...any) *contract.Plan {
		t.Helper()
		root := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(root, "secrets"), 0o700))
		access := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, api.URL)
		require.NoError(t, os.WriteFile(filepath.Join(root, "secrets", "kubeconfig"), []byte(access), 0o600))
		out := &contract.Plan{Deployment: "demo", Basis: contract.PlanBasis{Objects: map[string]string{}}}
		seen := &plan.Plan{}
		for _, note := range git {
			seen.Of("orchestrator/publish").Note(note)
		}
		seen.Of("orchestrator/sync").Put(apps+"root", api.Get(apps+"root"), api.Get(apps+"root"), "")
		p := &planner{
			Planner: &Planner{Dirs: step.Dirs{State: root}, Render: func(context.Context, *platform.Release, contract.RenderInput) ([]contract.Rendered, error) {
				return []contract.Rendered{
					{Component: "the apps", Kind: "gitops", Objects: []map[string]any{
						{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": map[string]any{"name": "root", "namespace": "argocd"}},
						{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": map[string]any{"name": "web", "namespace": "argocd", "labels": map[string]any{"slipway.sh/deployment": "demo"}},
							"spec": map[string]any{"source": map[string]any{"repoURL": "https://" + contract.NotKnown + "/slipway/platform.git", "targetRevision": contract.Branch}}},
					}},
					{Component: "web", Kind: string(platform.App), Objects: []map[string]any{
						{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "shop"}, "spec": map[string]any{"replicas": float64(replicas)}},
					}},
				}, nil
			}},
			req: contract.PlanRequest{Inputs: contract.Inputs{Config: cfg, Release: release, Environment: environment}, Cluster: true}, seen: seen, out: out,
			outputs: map[string]json.RawMessage{
				"orchestrator/sync": []byte("{}"), "infrastructure/terraform": []byte("{}"),
				"preorchestrator/git": []byte(`{"clusterURL":"https://gitea.gitea.svc","repository":"slipway/platform"}`),
			},
		}
		require.NoError(t, p.apps(t.Context()))
		(&maker{Seen: seen}).Fill(out)
		return out
	}
	names := func(p *contract.Plan) (out []string) {
		for _, c := range p.Changes {
			if c.Of == contract.PlanObjects || c.Of == contract.PlanApplications {
				out = append(out, c.Action+" "+c.Name)
			}
		}
		return out
	}

	got := made(1, contract.PlanBasis{Git: "slipway/platform@c1"})
	require.Equal(t, []string{"remove Service shop/former", "remove Application argocd/old"}, names(got))
	require.Empty(t, got.Unknown)
	require.Equal(t, "removes Application argocd/old", got.Changes[1].Destroys)

	got = made(2, contract.PlanBasis{Git: "slipway/platform@c1"}, contract.PlannedChange{Of: contract.PlanFiles, Action: contract.PlanChange, Name: "web.yaml"})
	require.Equal(t, []string{"change Deployment shop/web", "remove Service shop/former", "remove Application argocd/old", "change Application argocd/web"}, names(got))
	require.Equal(t, []contract.Difference{{Path: "spec.replicas", Old: "1", New: "2"}}, got.Changes[0].Fields)
	require.Equal(t, []contract.Difference{{Path: "spec.source.targetRevision", Old: `"c1"`, New: `"the commit that would be pushed"`}}, got.Changes[4].Fields)
	require.Empty(t, api.Writes())
}
