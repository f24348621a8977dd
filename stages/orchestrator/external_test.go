package orchestrator

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	atRoot = "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/root"
	atWeb  = "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/web"
)

// withArgo is an API server that knows Argo CD's kinds.
func withArgo(t *testing.T) (*kubetest.API, *kube.Client) {
	t.Helper()
	api := kubetest.Serve(t)
	api.Define("argoproj.io/v1alpha1", "AppProject", true)
	api.Define("argoproj.io/v1alpha1", "Application", true)
	c, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	return api, c
}

// published is the environment of a step with a release whose cluster is described by
// these texts.
func published(t *testing.T, url, cluster string) *step.Env {
	t.Helper()
	env := step.NewEnv("r1", "orchestrator/test", step.Dirs{State: t.TempDir(), Platform: t.TempDir()}, io.Discard, io.Discard)
	env.Deployment = "demo"
	for name, text := range map[string]string{
		env.Kubeconfig: fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, url),
		filepath.Join(env.PlatformDir, platform.File): `apiVersion: slipway/v2
name: sample
version: 1.0.0
namespaces: [{name: cd}, {name: shop}]
components:
  - {name: argocd, kind: manifests, path: a.yaml, namespace: cd, required: true}
  - {name: web, kind: app, path: gitops/web, namespace: shop}
gitops: {engine: argocd` + cluster + "}\n",
		filepath.Join(env.PlatformDir, "a.yaml"): "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", filepath.Join(env.PlatformDir, "gitops/web/Chart.yaml"): "name: web",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return env
}

func theirs() contract.Tree {
	return contract.Tree{Namespace: "cd", Repository: "https://git.example.org/team/platform.git", Target: "stable", Path: "deploy"}
}

func TestTheProjectsAreMadeBeforeAnythingIsReadOfTheTree(t *testing.T) {
	api, _ := withArgo(t)
	env := published(t, api.URL, "")
	in := contract.ProjectsInput{Tree: theirs()}
	_, err := step.Unchanged(runProjects)(t.Context(), env, in)
	require.ErrorIs(t, err, plan.ErrChange)
	out, err := runProjects(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, []string{"AppProject cd/slipway-root", "AppProject cd/platform"}, out.Names)
	project := api.Get("/apis/argoproj.io/v1alpha1/namespaces/cd/appprojects/platform")
	require.Equal(t, []any{in.Repository}, project["spec"].(map[string]any)["sourceRepos"])
	_, err = step.Unchanged(runProjects)(t.Context(), env, in)
	require.NoError(t, err)
}

// TestTheSecretOfTheCluster is what ApplicationSets read of it.
func TestTheSecretOfTheCluster(t *testing.T) {
	const at = "/api/v1/namespaces/cd/secrets/cluster-in-cluster"
	api, _ := withArgo(t)
	env := published(t, api.URL, `, cluster: {labels: {size: "{scale}", addons: "true"}, annotations: {repo: "{git.url}", revision: "{git.revision}", path: "{git.path}", domain: "web.{domain}"}}`)
	in := contract.ProjectsInput{Tree: theirs(), Fill: map[string]any{"scale": "50", "domain": "example.org"}}
	out, err := runProjects(t.Context(), env, in)
	require.NoError(t, err)
	require.Contains(t, out.Names, "Secret cd/cluster-in-cluster")
	secret := api.Get(at)
	meta := secret["metadata"].(map[string]any)
	require.Equal(t, map[string]any{
		"size": "50", "addons": "true", "argocd.argoproj.io/secret-type": "cluster", kube.ManagedBy: "slipway", kube.DeploymentLabel: "demo",
	}, meta["labels"])
	require.Equal(t, map[string]any{"repo": in.Repository, "revision": "stable", "path": "deploy", "domain": "web.example.org"}, meta["annotations"])
	data := map[string]any{}
	for key, value := range map[string]string{"name": "in-cluster", "server": "https://kubernetes.default.svc", "config": `{"tlsClientConfig":{"insecure":false}}`} {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	require.Equal(t, data, secret["data"])
	require.NotContains(t, in.Fill, "git.url", "the input stays as it is")

	delete(in.Fill, "scale")
	_, err = runProjects(t.Context(), env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeUnusable})
	require.ErrorContains(t, err, "size: nothing is known for {scale}")
}

// TestArgoCDSaysWhichCommitABranchIsAt: nobody else needs to reach the repository.
func TestArgoCDSaysWhichCommitABranchIsAt(t *testing.T) {
	api, c := withArgo(t)
	in := contract.AppsInput{Tree: theirs()}
	api.Set(t, atRoot, "{metadata: {name: root, namespace: cd}, status: {sync: {status: Synced, revision: old}, health: {status: Healthy}}}")
	looks := 0
	api.Controller = func(path string, o map[string]any) {
		looks++
		require.Equal(t, atRoot, path)
		meta := o["metadata"].(map[string]any)
		require.Equal(t, map[string]any{argo.RefreshAnnotation: "hard"}, meta["annotations"], "what was cached before does not count")
		time.AfterFunc(300*time.Millisecond, func() {
			api.Delete(atRoot)
			api.Set(t, atRoot, "{metadata: {name: root, namespace: cd}, status: {sync: {status: OutOfSync, revision: "+revision+"}, health: {status: Healthy}}}")
		})
	}
	got, err := resolve(t.Context(), c, in, time.Minute)
	require.NoError(t, err)
	require.Equal(t, revision, got, "not the one from before")
	c, err = c.Planned(plan.Verify("sync"))
	require.NoError(t, err)
	got, err = resolve(t.Context(), c, in, time.Minute)
	require.NoError(t, err, "asking changes nothing")
	require.Equal(t, revision, got)
	require.Equal(t, 2, looks)
}

func TestARepositoryThatArgoCDCannotRead(t *testing.T) {
	api, c := withArgo(t)
	api.Set(t, atRoot, "{metadata: {name: root, namespace: cd}, status: {sync: {status: Unknown}, conditions: [{type: ComparisonError, message: 'authentication required'}]}}")
	api.Controller = func(_ string, o map[string]any) { delete(o["metadata"].(map[string]any), "annotations") }
	in := contract.AppsInput{Tree: theirs()}
	_, err := resolve(t.Context(), c, in, 400*time.Millisecond)
	require.ErrorIs(t, err, &fault.Fault{Code: gitserver.CodeRepository})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.ErrorContains(t, err, "read stable of https://git.example.org/team/platform.git: waited ")
	require.ErrorContains(t, err, "authentication required")

	api.Delete(atRoot)
	_, err = resolve(t.Context(), c, in, 400*time.Millisecond)
	require.Error(t, err, "there is no root")
}

// TestAppsOfARepositoryOfTheUsersAreWaitedFor at the commit that Argo CD found.
func TestAppsOfARepositoryOfTheUsersAreWaitedFor(t *testing.T) {
	api, _ := withArgo(t)
	env := published(t, api.URL, "")
	second := 0
	api.Controller = func(path string, o map[string]any) { // it answers at once, and refreshes what it is asked to
		second++
		children := []any{}
		if path == atRoot {
			children = append(children, map[string]any{"group": "argoproj.io", "kind": "Application", "namespace": "cd", "name": "web"})
		}
		delete(o["metadata"].(map[string]any), "annotations")
		o["status"] = map[string]any{
			"sync": map[string]any{"status": "Synced", "revision": revision}, "health": map[string]any{"status": "Healthy"},
			"reconciledAt": fmt.Sprintf("2026-01-02T03:04:%02dZ", second), "resources": children,
		}
	}
	api.Set(t, atWeb, "{metadata: {name: web, namespace: cd}, status: {sync: {status: Synced, revision: "+revision+"}, health: {status: Healthy}, reconciledAt: '2026-01-02T03:04:00Z'}}")
	values := contract.TreeValues{Domain: "example.org"}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	out, err := runSync(ctx, env, contract.AppsInput{Tree: theirs(), Apps: []string{"web"}, Values: &values})
	require.NoError(t, err)
	require.Equal(t, revision, out.Revision)
	require.Equal(t, []contract.App{{Name: "web", Namespace: "cd", Sync: "Synced", Health: "Healthy", Revision: revision}}, out.Apps)
	require.True(t, strings.HasPrefix(api.Writes()[0], "PATCH "+atRoot))
}
