package preorchestrator

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

const upstream = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: argocd-repo-server}
spec:
  template:
    spec:
      initContainers:
        - {name: copyutil, image: "quay.io/argoproj/argocd:v3"}
      containers:
        - name: argocd-repo-server
          image: quay.io/argoproj/argocd:v3
          imagePullPolicy: Always
          env: [{name: A, value: a}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: argocd-redis}
spec:
  template:
    spec:
      initContainers:
        - {name: secret-init, image: "quay.io/argoproj/argocd:v3"}
      containers:
        - {name: redis, image: "public.ecr.aws/docker/library/redis:8-alpine", args: [--save, ""]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: argocd-dex-server}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-tls-certs-cm}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cmd-params-cm}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: argocd}
`

const changes = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: argocd-repo-server}
spec:
  template:
    spec:
      containers:
        - name: argocd-repo-server
          env: [{name: B, value: b}]
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: platform}
spec:
  sourceRepos: ["https://gitea.gitea.svc/slipway/platform.git", "https://other/x"]
`

func adapted(t *testing.T, s settings) map[string]*unstructured.Unstructured {
	t.Helper()
	base, err := kube.Decode([]byte(upstream))
	require.NoError(t, err)
	overlay, err := kube.Decode([]byte(changes))
	require.NoError(t, err)
	merged, err := merge(base, overlay)
	require.NoError(t, err)
	objs, err := adapt(merged, s)
	require.NoError(t, err)
	out := map[string]*unstructured.Unstructured{}
	for _, o := range objs {
		out[o.GetKind()+"/"+o.GetName()] = o
	}
	return out
}

func byDigest(short string) (string, error) { return "slipway.local/" + short + "@sha256:00", nil }

func TestArgoCDBecomesOurs(t *testing.T) {
	objs := adapted(t, settings{labels: kube.Labels("demo"), image: byDigest, gitHost: giteaHost})
	require.NotContains(t, objs, "Deployment/argocd-dex-server")
	require.NotContains(t, objs, "ConfigMap/argocd-tls-certs-cm", "step tls writes it")
	require.Len(t, objs, 5)

	pod := func(name string) string {
		spec, _, err := unstructured.NestedMap(objs["Deployment/"+name].Object, "spec", "template", "spec")
		require.NoError(t, err)
		b, err := yaml.Marshal(spec)
		require.NoError(t, err)
		return string(b)
	}
	require.YAMLEq(t, `
initContainers:
  - {name: copyutil, image: "slipway.local/argocd@sha256:00", imagePullPolicy: IfNotPresent}
containers:
  - name: argocd-repo-server
    image: slipway.local/argocd@sha256:00
    imagePullPolicy: IfNotPresent
    env: [{name: B, value: b}, {name: A, value: a}]
`, pod("argocd-repo-server"))
	require.YAMLEq(t, `
containers:
  - {name: redis, image: "slipway.local/redis@sha256:00", imagePullPolicy: IfNotPresent, args: [--save, ""], command: [redis-server]}
`, pod("argocd-redis"))

	require.Equal(t, "argocd", objs["Deployment/argocd-repo-server"].GetNamespace())
	require.Empty(t, objs["ClusterRole/argocd"].GetNamespace())
	require.Equal(t, "demo", objs["ClusterRole/argocd"].GetLabels()[kube.DeploymentLabel])
	params, _, err := unstructured.NestedStringMap(objs["ConfigMap/argocd-cmd-params-cm"].Object, "data")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"repo.server": "argocd-repo-server.argocd.svc.cluster.local:8081"}, params)
	note, _, err := unstructured.NestedString(objs["Deployment/argocd-repo-server"].Object, "spec", "template", "metadata", "annotations", configNote)
	require.NoError(t, err)
	require.Len(t, note, 64)
}

func TestAGitServerUnderItsPublicHost(t *testing.T) {
	objs := adapted(t, settings{image: byDigest, gitHost: "gitea.example.org", gitIP: "10.96.0.7"})
	repos, _, err := unstructured.NestedStringSlice(objs["AppProject/platform"].Object, "spec", "sourceRepos")
	require.NoError(t, err)
	require.Equal(t, []string{"https://gitea.example.org/slipway/platform.git", "https://other/x"}, repos)
	aliases, _, err := unstructured.NestedSlice(objs["Deployment/argocd-repo-server"].Object, "spec", "template", "spec", "hostAliases")
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"ip": "10.96.0.7", "hostnames": []any{"gitea.example.org"}}}, aliases)
}

func TestAnImageThatNobodyKnowsIsAnError(t *testing.T) {
	objs, err := kube.Decode([]byte(upstream))
	require.NoError(t, err)
	_, err = adapt(objs, settings{image: func(string) (string, error) { return "", errors.New("no such image") }})
	require.ErrorContains(t, err, "Deployment argocd-repo-server: no such image")
	_, err = imageOf(map[string]any{"name": "x", "image": "ghcr.io/dexidp/dex:v2@sha256:00"})
	require.ErrorContains(t, err, `"ghcr.io/dexidp/dex:v2@sha256:00", which no short name stands for`)
	short, err := imageOf(map[string]any{"image": "registry:5000/argoproj/argocd@sha256:00"})
	require.NoError(t, err)
	require.Equal(t, "argocd", short)
}

func TestManifestsMustBeThere(t *testing.T) {
	_, err := readManifests(fstest.MapFS{"manifests/argocd/readme.txt": {}}, "manifests/argocd")
	require.ErrorContains(t, err, "manifests/argocd holds no .yaml file")
	_, err = readManifests(fstest.MapFS{"m/a.yaml": {Data: []byte("kind: X")}}, "m")
	require.ErrorContains(t, err, "m/a.yaml")
}

func TestRecordsInTheWayAreFound(t *testing.T) {
	rel := func(version int, status release.Status) *release.Release {
		return &release.Release{Version: version, Info: &release.Info{Status: status}}
	}
	versions := func(list []*release.Release) (out []int) {
		for _, r := range list {
			out = append(out, r.Version)
		}
		return out
	}
	deployed, stale := sortHistory([]*release.Release{rel(1, release.StatusPendingInstall)})
	require.Nil(t, deployed)
	require.Equal(t, []int{1}, versions(stale), "a killed install")

	deployed, stale = sortHistory([]*release.Release{rel(1, release.StatusSuperseded), rel(2, release.StatusDeployed), rel(3, release.StatusFailed), rel(4, release.StatusPendingUpgrade)})
	require.Equal(t, 2, deployed.Version)
	require.Equal(t, []int{4, 3}, versions(stale), "a killed upgrade after a failed one")

	deployed, stale = sortHistory([]*release.Release{rel(1, release.StatusFailed), rel(2, release.StatusPendingUpgrade)})
	require.Nil(t, deployed)
	require.Equal(t, []int{2, 1}, versions(stale))
}

func TestTheRepositoryServerAsksTheProxyButNotForTheCluster(t *testing.T) {
	objs := adapted(t, settings{
		image: byDigest, gitHost: "gitea.example.org",
		proxy: contract.Proxy{HTTPS: "http://proxy.example.com:3128", NoProxy: ".example.net"},
	})
	env := func(name string) map[string]string {
		pod, _, err := unstructured.NestedMap(objs["Deployment/"+name].Object, "spec", "template", "spec")
		require.NoError(t, err)
		out := map[string]string{}
		containers, _, err := unstructured.NestedSlice(pod, "containers")
		require.NoError(t, err)
		for _, c := range containers {
			vars, _ := c.(map[string]any)["env"].([]any)
			for _, v := range vars {
				v := v.(map[string]any)
				if value, ok := v["value"].(string); ok {
					out[v["name"].(string)] = value
				}
			}
		}
		return out
	}
	server := env("argocd-repo-server")
	require.Equal(t, "http://proxy.example.com:3128", server["HTTPS_PROXY"])
	require.NotContains(t, server, "HTTP_PROXY")
	for _, host := range []string{".svc", ".cluster.local", "gitea.example.org", ".example.net"} {
		require.Contains(t, strings.Split(server["NO_PROXY"], ","), host)
	}
	require.NotContains(t, env("argocd-redis"), "HTTPS_PROXY")
}
