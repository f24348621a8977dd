package platform_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/stretchr/testify/require"
)

const v1 = `apiVersion: slipway/v1
name: sample
version: 1.1.0
upgradableFrom: ["1.0.0", 1.1.0-rc.1]
namespaces:
  - name: gitea
    labels: {slipway.sh/part-of: sample}
  - name: argocd
  - name: demo
secrets:
  - name: gitea-admin
    namespace: gitea
    keys:
      - {key: username, generate: literal, value: slipway}
      - {key: password, generate: password}
      - {key: token, generate: token, length: 40}
  - name: platform-repository
    namespace: argocd
    type: Opaque
    labels: {argocd.argoproj.io/secret-type: repository}
    keys:
      - {key: password, generate: copyOf, from: gitea/gitea-admin/password}
      - {key: url, generate: literal, value: "https://gitea.{domain}/slipway/platform.git"}
components:
  - {name: gitea, kind: bootstrap, path: charts/gitea, namespace: gitea, required: true, images: [gitea]}
  - {name: argocd, kind: bootstrap, bundle: argocd, namespace: argocd, required: true, images: [argocd, redis]}
  - {name: web, kind: app, path: gitops/apps/web, namespace: demo, wave: 2, images: [guestbook]}
  - {name: database, kind: app, path: gitops/apps/database, namespace: demo, wave: 1, images: [postgresql]}
  - {name: extras, kind: app, path: gitops/apps/extras, namespace: demo, wave: 1, enabled: false}
links:
  - {name: Gitea, urlTemplate: "https://gitea.{domain}/{deployment}", service: "gitea/gitea:443"}
checks:
  - {name: web answers, component: web, service: "demo/web:80", contains: rows}
`

func TestAReleaseOfTheFirstVersionIsRead(t *testing.T) {
	fsys := tree(v1)
	fsys["argocd/project.yaml"] = &fstest.MapFile{Data: []byte(`kind: AppProject
spec: {clusterResourceWhitelist: [{group: scheduling.k8s.io, kind: PriorityClass}, {group: "", kind: Namespace}]}`)}
	fsys[platform.File].Data = []byte(strings.Replace(v1, "bundle: argocd,", "bundle: argocd, path: argocd,", 1))
	r, err := platform.Load(fsys)
	require.NoError(t, err)
	require.Equal(t, platform.APIVersion, r.APIVersion)

	gitea, _ := r.Component("gitea")
	require.Equal(t, platform.Chart, gitea.Kind)
	require.JSONEq(t, `{"host":"gitea.{domain}","images":{"gitea":"{images.gitea}"},"scale":"{scale}","storageClass":"{storageClass}","tls":{"secretName":"gitea-tls"}}`, string(gitea.Values))
	argocd, _ := r.Component("argocd")
	require.Equal(t, platform.Manifests, argocd.Kind)
	require.Equal(t, map[string]string{"gitea.{domain}": "gitea/gitea"}, argocd.Hosts)
	first, last := argocd.Patches()
	require.Contains(t, string(first), "repo.server:")
	require.Contains(t, string(last), "name: secret-init\n          $patch: delete")
	first, _ = gitea.Patches()
	require.Empty(t, first)

	require.Equal(t, "argocd", r.GitOps.Engine)
	require.Equal(t, "gitops", r.GitOps.Tree)
	require.Equal(t, []string{"scheduling.k8s.io/PriorityClass", "Namespace"}, r.GitOps.Project.ClusterKinds)
	require.Equal(t, "gitea/gitea-slipway", r.GitServer().Accounts.Writer)
	require.Equal(t, "gitea/gitea-tls", r.Certificates[0].Secret)
	require.Equal(t, "outgoing-proxy", r.ConfigMaps[0].Name)
	require.Equal(t, "argocd-redis", r.Secrets[len(r.Secrets)-1].Name)
}

func TestTheTreeOfTheFirstVersionKeepsItsPlace(t *testing.T) {
	fsys := tree(strings.ReplaceAll(v1, "path: gitops/", "path: tree/") + "gitops: tree\n")
	for _, dir := range []string{"tree/apps/web", "tree/apps/database", "tree/apps/extras"} {
		fsys[dir+"/Chart.yaml"] = &fstest.MapFile{Data: []byte("name: x")}
	}
	r, err := platform.Load(fsys)
	require.NoError(t, err)
	require.Equal(t, "tree", r.GitOps.Tree)
}

func TestMoreBootstrapComponentsOfTheFirstVersionAreInstalled(t *testing.T) {
	for third, kind := range map[string]platform.Kind{
		"{name: vault, kind: bootstrap, path: charts/gitea, namespace: demo}": platform.Chart,
		"{name: vault, kind: bootstrap, bundle: vault, namespace: demo}":      platform.Manifests,
		"{name: vault, kind: bootstrap, path: plain, namespace: demo}":        platform.Manifests,
	} {
		fsys := tree(strings.Replace(v1, "links:\n", "  - "+third+"\nlinks:\n", 1))
		fsys["plain/objects.yaml"] = &fstest.MapFile{Data: []byte("a: b")}
		r, err := platform.Load(fsys)
		require.NoError(t, err, third)
		c, _ := r.Component("vault")
		require.Equal(t, kind, c.Kind)
	}
}

func TestProblemsOfTheFirstVersionHaveTheirLines(t *testing.T) {
	_, err := platform.Load(tree(strings.Replace(v1, "namespace: demo, wave: 2", "namespace: lost, wave: 200", 1)))
	require.ErrorContains(t, err, `line 27: components[2].namespace: got "lost"`)
	require.ErrorContains(t, err, `line 27: components[2].wave: got 200`)
}

func TestAVersionThatIsNotKnownIsRefused(t *testing.T) {
	_, err := platform.Load(tree(strings.Replace(v1, "slipway/v1", "slipway/v3", 1)))
	require.ErrorContains(t, err, `line 1: apiVersion: got "slipway/v3", want slipway/v2`)
}

// TestAliasesInAProjectOfTheFirstVersion are not written out: its component's objects have them.
func TestAliasesInAProjectOfTheFirstVersion(t *testing.T) {
	fsys := tree(strings.Replace(v1, "bundle: argocd,", "bundle: argocd, path: argocd,", 1))
	kinds := "[&x {group: a, kind: " + strings.Repeat("A", 1<<18) + "}" + strings.Repeat(", *x", 80) + "]"
	fsys["argocd/project.yaml"] = &fstest.MapFile{Data: []byte("kind: AppProject\nspec: {clusterResourceWhitelist: " + kinds + "}\n")}
	r, err := platform.Load(fsys)
	require.NoError(t, err)
	require.Empty(t, r.GitOps.Project.ClusterKinds)
}

// TestTextOfTheFirstVersionIsNoYAML of Slipway's own.
func TestTextOfTheFirstVersionIsNoYAML(t *testing.T) {
	for name, change := range map[string]func(fstest.MapFS){
		"images": func(fsys fstest.MapFS) {
			text := strings.Replace(v1, "images: [gitea]", `images: ["a\"b"]`, 1)
			require.NotEqual(t, v1, text)
			fsys[platform.File].Data = []byte(text)
		},
		"kinds": func(fsys fstest.MapFS) {
			fsys[platform.File].Data = []byte(strings.Replace(v1, "bundle: argocd,", "bundle: argocd, path: argocd,", 1))
			fsys["argocd/project.yaml"] = &fstest.MapFile{Data: []byte("kind: AppProject\nspec: {clusterResourceWhitelist: [{group: '', kind: 'A], namespaces: [\"*\"'}]}\n")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := tree(v1)
			change(fsys)
			_, err := platform.Load(fsys)
			require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeInvalid})
		})
	}
}
