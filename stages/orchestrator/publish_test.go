package orchestrator

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

func input() contract.PublishInput {
	return contract.PublishInput{
		Git: contract.Git{ClusterURL: "https://gitea.gitea.svc", Repository: "slipway/platform"},
		Values: contract.TreeValues{
			Domain: "example.org", Scale: "small", Disabled: []string{"toolbox"},
			Images:       map[string]string{"postgresql": "r/postgresql@sha256:aa", "busybox": "r/busybox@sha256:bb", "argocd": "r/argocd@sha256:cc"},
			StorageClass: "standard", Backing: contract.Backing{ClusterName: "demo"},
		},
	}
}

func testRelease() *platform.Release {
	return &platform.Release{
		Name: "reference", Version: "1.0.0",
		GitOps: &platform.GitOps{Engine: "argocd", Tree: "gitops", Project: platform.Project{
			Name: "apps", ClusterKinds: []string{"scheduling.k8s.io/PriorityClass", "Namespace"},
		}},
		Components: []platform.Component{
			{Name: "argocd", Kind: platform.Manifests, Namespace: "cd", Images: []string{"argocd"}},
			{Name: "database", Kind: platform.App, Namespace: "database", Wave: 20, Images: []string{"postgresql"}},
			{Name: "base", Kind: platform.App, Namespace: "platform", Wave: 10},
			{Name: "toolbox", Kind: platform.App, Namespace: "platform", Wave: 30, Images: []string{"busybox"}},
		},
	}
}

func folder() fstest.MapFS {
	return fstest.MapFS{
		"root-app/Chart.yaml":              {Data: []byte("name: root-app\n")},
		"root-app/values.yaml":             {Data: []byte("x: 1\n")},
		"apps/base/templates/a.yaml":       {Data: []byte("a\n")},
		"apps/database/files/nested/x.sql": {Data: []byte("select 1;\n")},
	}
}

func TestTreeIsTheFolderAndWhatSlipwayFillsIn(t *testing.T) {
	tree, err := buildTree(folder(), testRelease(), "demo", input())
	require.NoError(t, err)
	require.Equal(t, []string{
		"apps/base/templates/a.yaml", "apps/database/files/nested/x.sql",
		"root-app/Chart.yaml", "root-app/slipway.yaml", "root-app/values.yaml",
	}, slices.Sorted(maps.Keys(tree)))

	var got map[string]any
	require.NoError(t, yaml.Unmarshal(tree["root-app/slipway.yaml"], &got))
	require.Equal(t, map[string]any{"postgresql": "r/postgresql@sha256:aa"}, got["images"], "only images of apps that are on")
	require.Equal(t, map[string]any{
		"base":     map[string]any{"enabled": true, "namespace": "platform", "wave": 10.0, "images": []any{}},
		"database": map[string]any{"enabled": true, "namespace": "database", "wave": 20.0, "images": []any{"postgresql"}},
		"toolbox":  map[string]any{"enabled": false, "namespace": "platform", "wave": 30.0, "images": []any{"busybox"}},
	}, got["components"])
	require.Equal(t, map[string]any{"url": "https://gitea.gitea.svc/slipway/platform.git", "revision": "main"}, got["repository"])
	require.Equal(t, "standard", got["storageClass"])
	require.Equal(t, "1.0.0", got["platform"])
	require.Equal(t, map[string]any{"namespace": "cd", "project": "apps"}, got["applications"])
}

func TestTheTreeChangesOnlyWithWhatAppsGet(t *testing.T) {
	built := func(change func(*contract.PublishInput)) gitserver.Tree {
		in := input()
		in.Values.Images = maps.Clone(in.Values.Images)
		change(&in)
		tree, err := buildTree(folder(), testRelease(), "demo", in)
		require.NoError(t, err)
		return tree
	}
	same := built(func(*contract.PublishInput) {})
	require.Equal(t, same, built(func(in *contract.PublishInput) {
		in.Values.Images["argocd"], in.Git.Address = "r/argocd@sha256:dd", "10.0.0.9:443"
	}))
	require.NotEqual(t, same, built(func(in *contract.PublishInput) { in.Values.Images["postgresql"] = "r/postgresql@sha256:ee" }))
	require.NotEqual(t, same, built(func(in *contract.PublishInput) { in.Values.Disabled = nil }))
	require.NotEqual(t, same, built(func(in *contract.PublishInput) { in.Values.Scale = "large" }))
	require.NotEqual(t, same, built(func(in *contract.PublishInput) { in.Values.SMTP = &contract.SMTP{Host: "mail"} }))
}

func TestTheUsersValuesReachTheRootApp(t *testing.T) {
	in := input()
	in.Values.Values = map[string]json.RawMessage{"base": json.RawMessage(`{"replicas":3}`)}
	in.Values.Settings = json.RawMessage(`{"theme":"dark"}`)
	in.Values.SMTP = &contract.SMTP{Host: "mail", Port: 25, From: "a@b.example", TLS: "none"}
	in.Values.Observability = &contract.Observability{Endpoint: "https://metrics"}
	tree, err := buildTree(folder(), testRelease(), "demo", in)
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, yaml.Unmarshal(tree["root-app/slipway.yaml"], &got))
	require.Equal(t, map[string]any{"replicas": 3.0}, got["components"].(map[string]any)["base"].(map[string]any)["values"])
	require.Equal(t, map[string]any{"theme": "dark"}, got["settings"])
	require.Equal(t, map[string]any{"host": "mail", "port": 25.0, "from": "a@b.example", "tls": "none"}, got["smtp"])
	require.Equal(t, map[string]any{"endpoint": "https://metrics"}, got["observability"])
}

func TestATreeThatCannotBeBuiltSaysWhy(t *testing.T) {
	in := input()
	delete(in.Values.Images, "postgresql")
	_, err := buildTree(folder(), testRelease(), "demo", in)
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeUnusable})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.ErrorContains(t, err, "component database needs the image postgresql")

	_, err = buildTree(fstest.MapFS{"apps/x": {}}, testRelease(), "demo", input())
	require.ErrorContains(t, err, "folder gitops holds no chart root-app")

	taken := folder()
	taken["root-app/slipway.yaml"] = &fstest.MapFile{}
	_, err = buildTree(taken, testRelease(), "demo", input())
	require.ErrorContains(t, err, "slipway.yaml is Slipway's to write")
}

// TestATreeWithoutApps has no chart of a root: ApplicationSets read it.
func TestATreeWithoutApps(t *testing.T) {
	r := testRelease()
	r.Components = r.Components[:1]
	tree, err := buildTree(fstest.MapFS{"addons/web/Chart.yaml": {Data: []byte("name: web\n")}}, r, "demo", input())
	require.NoError(t, err)
	require.Equal(t, []string{"addons/web/Chart.yaml"}, slices.Sorted(maps.Keys(tree)))
}

func TestTheRootFollowsTheBranchAndItsAppsItsCommit(t *testing.T) {
	in := contract.AppsInput{Tree: contract.Tree{Namespace: "cd", Repository: "https://gitea.gitea.svc/slipway/platform.git", Target: contract.Branch}}
	root, err := rootApplication("demo", testRelease(), in)
	require.NoError(t, err)
	require.Equal(t, "cd", root.GetNamespace())
	require.Equal(t, kube.Labels("demo"), root.GetLabels())
	b, err := yaml.Marshal(root.Object["spec"])
	require.NoError(t, err)
	require.YAMLEq(t, `
project: slipway-root
source:
  repoURL: https://gitea.gitea.svc/slipway/platform.git
  targetRevision: main
  path: root-app
  helm:
    releaseName: root
    valueFiles: [slipway.yaml]
    parameters: [{name: repository.revision, value: $ARGOCD_APP_REVISION, forceString: true}]
destination: {server: https://kubernetes.default.svc, namespace: cd}
revisionHistoryLimit: 5
syncPolicy:
  automated: {prune: true, selfHeal: true}
  retry: {limit: -1, refresh: true, backoff: {duration: 2s, factor: 2, maxDuration: 30s}}
`, string(b))
}

// TestTheRootOfARepositoryOfTheUsers: nothing is pushed there, so that its values are in the
// Application.
func TestTheRootOfARepositoryOfTheUsers(t *testing.T) {
	values := input().Values
	in := contract.AppsInput{
		Tree:   contract.Tree{Namespace: "cd", Repository: "git@git.example.org:team/platform.git", Target: "v1.2.0", Path: "deploy/site"},
		Values: &values,
	}
	root, err := rootApplication("demo", testRelease(), in)
	require.NoError(t, err)
	source, _, err := unstructured.NestedMap(root.Object, "spec", "source")
	require.NoError(t, err)
	require.Equal(t, []any{in.Repository, "v1.2.0", "deploy/site/root-app"}, []any{source["repoURL"], source["targetRevision"], source["path"]})
	helm := source["helm"].(map[string]any)
	require.NotContains(t, helm, "valueFiles")
	given := helm["valuesObject"].(map[string]any)
	require.Equal(t, map[string]any{"url": in.Repository, "revision": "v1.2.0", "path": "deploy/site"}, given["repository"])
	require.Equal(t, map[string]any{"postgresql": "r/postgresql@sha256:aa"}, given["images"])
	require.Equal(t, map[string]any{"enabled": true, "namespace": "database", "wave": int64(20), "images": []any{"postgresql"}}, given["components"].(map[string]any)["database"])
	require.NotPanics(t, func() { root.DeepCopy() })

	values.Images = nil
	_, err = rootApplication("demo", testRelease(), in)
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeUnusable})
}

// TestATreeIsNotTooLarge: all of it is in memory.
func TestATreeIsNotTooLarge(t *testing.T) {
	files := folder()
	large := &fstest.MapFile{Data: make([]byte, 60<<20)}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		files["web/"+name] = large
	}
	_, err := buildTree(files, testRelease(), "demo", input())
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeUnusable})
	require.ErrorContains(t, err, "are larger than 256 MiB together")
}

// TestTheGitServerIsTheReleases: a record, from which a plan may have it, chooses neither an
// account nor an address.
func TestTheGitServerIsTheReleases(t *testing.T) {
	api, c := withArgo(t)
	r := testRelease()
	in := input()
	_, err := releaseGit(t.Context(), c, r, in)
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeUnfit})
	r.GitOps.Server = &platform.GitServer{
		Service: "code/git:443", Hosts: []string{"git.code.svc", "git.{domain}"}, Repository: "slipway/platform", Accounts: platform.Accounts{Writer: "code/writer"},
	}
	own := contract.Git{
		GitServer: contract.GitServer{URL: "https://git.example.org", Address: "203.0.113.9:443"}, ClusterURL: "https://git.code.svc", Repository: "slipway/platform", Writer: "billing/database",
	}
	c, err = c.Planned(new(plan.Plan).Of("orchestrator/publish"))
	require.NoError(t, err)
	in.Git = own
	_, err = releaseGit(t.Context(), c, r, in)
	require.ErrorIs(t, err, plan.ErrLater, "there is no such Service yet")
	api.Set(t, "/api/v1/namespaces/code/services/git", "{metadata: {name: git, namespace: code}, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}")
	got, err := releaseGit(t.Context(), c, r, in)
	require.NoError(t, err)
	require.Equal(t, "192.0.2.1:443", got.Address)
	require.Equal(t, "code/writer", got.Writer)
	for what, change := range map[string]func(*contract.Git){
		"nothing":              func(g *contract.Git) { *g = contract.Git{} },
		"HTTP":                 func(g *contract.Git) { g.URL = "http://git.example.org" },
		"another host":         func(g *contract.Git) { g.URL = "https://evil.example.com" },
		"another port":         func(g *contract.Git) { g.URL += ":8443" },
		"another path":         func(g *contract.Git) { g.URL += "/a" },
		"a user":               func(g *contract.Git) { g.URL = "https://git.example.org@evil.example.com" },
		"another host for CD":  func(g *contract.Git) { g.ClusterURL = "https://evil.example.com" },
		"another repository":   func(g *contract.Git) { g.Repository = "a/b" },
		"a path in the server": func(g *contract.Git) { g.Repository = "slipway/../x" },
	} {
		in.Git = own
		change(&in.Git)
		_, err = releaseGit(t.Context(), c, r, in)
		require.ErrorIs(t, err, plan.ErrLater, what)
	}
	require.Empty(t, api.Writes())
}
