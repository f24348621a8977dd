package render_test

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers/lock"
	releases "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// argoCD is the component of the reference platform, rendered over what matters of Argo
// CD's own manifests, by "Kind/name".
func argoCD(t *testing.T) (*platform.Release, map[string]*unstructured.Unstructured) {
	t.Helper()
	dir, err := releases.Release("1.0.0")
	require.NoError(t, err)
	r, err := platform.Load(dir)
	require.NoError(t, err)
	c := *r.Engine()
	require.Equal(t, platform.Manifests, c.Kind)
	objs, err := render.Manifests(t.Context(), dir, os.DirFS("testdata/bundle"), c)
	require.NoError(t, err)
	refs := map[string]string{}
	pins, err := lock.Load()
	require.NoError(t, err)
	for _, name := range c.Images {
		image, _ := pins.Image(name)
		for _, known := range append(image.StandsFor, name) {
			refs[known] = "slipway.local/" + name + "@sha256:00"
		}
	}
	render.SetImages(objs, refs)
	render.AddHosts(objs, map[string]string{"gitea.example.org": "10.96.0.7"})
	out := map[string]*unstructured.Unstructured{}
	for i, name := range named(objs) {
		require.NotContains(t, out, name, "each once")
		out[name] = objs[i]
	}
	return r, out
}

// podOf is the pod of a workload, of which every field is known.
func podOf(t *testing.T, o *unstructured.Unstructured) corev1.PodSpec {
	t.Helper()
	from := func(into any) {
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true))
	}
	switch o.GetKind() {
	case "Deployment":
		var d appsv1.Deployment
		from(&d)
		return d.Spec.Template.Spec
	case "StatefulSet":
		var s appsv1.StatefulSet
		from(&s)
		return s.Spec.Template.Spec
	}
	t.Fatalf("%s has no pods", o.GetKind())
	return corev1.PodSpec{}
}

func TestArgoCDOfTheReferencePlatform(t *testing.T) {
	r, objs := argoCD(t)
	var workloads []string
	for name, o := range objs {
		if o.GetKind() == "Deployment" || o.GetKind() == "StatefulSet" {
			workloads = append(workloads, name)
		}
	}
	slices.Sort(workloads)
	require.Equal(t, []string{
		"Deployment/argocd-applicationset-controller", "Deployment/argocd-redis", "Deployment/argocd-repo-server",
		"StatefulSet/argocd-application-controller",
	}, workloads, "no dex, no server")
	require.NotContains(t, objs, "ConfigMap/argocd-tls-certs-cm", "the step tls makes it")
	require.NotContains(t, objs, "ConfigMap/argocd-ssh-known-hosts-cm", "the step configmaps makes it")
	require.NotContains(t, objs, "AppProject/platform", "the step projects makes it")
	require.Contains(t, objs, "ClusterRole/argocd-application-controller", "the rest stays")
	require.Contains(t, objs, "Service/argocd-repo-server")

	var all []*unstructured.Unstructured
	for _, name := range workloads {
		all = append(all, objs[name])
		pod := podOf(t, objs[name])
		require.Len(t, pod.Containers, 1, name)
		require.Empty(t, pod.InitContainers, "%s: one would make the password, another copy a program that nobody runs", name)
		require.Equal(t, corev1.PullIfNotPresent, pod.Containers[0].ImagePullPolicy, name)
		require.False(t, pod.Containers[0].Resources.Requests.Memory().IsZero(), name)
		require.Equal(t, []corev1.HostAlias{{IP: "10.96.0.7", Hostnames: []string{"gitea.example.org"}}}, pod.HostAliases, name)
	}
	require.Equal(t, []string{"slipway.local/argocd@sha256:00", "slipway.local/redis@sha256:00"}, render.Images(all), "none by a tag")
	require.EqualValues(t, map[string]string{"gitea.{domain}": "gitea/gitea"}, r.Engine().Hosts)

	redis := podOf(t, objs["Deployment/argocd-redis"]).Containers[0]
	require.Equal(t, []string{"redis-server"}, redis.Command, "the image has no entrypoint of its own")
	require.Equal(t, "slipway.local/redis@sha256:00", redis.Image)
	require.Contains(t, redis.Args, "--requirepass $(REDIS_PASSWORD)")
	for _, name := range []string{"Deployment/argocd-repo-server", "StatefulSet/argocd-application-controller"} {
		require.Equal(t, "slipway.local/argocd@sha256:00", podOf(t, objs[name]).Containers[0].Image)
	}
	replicas, _, err := unstructured.NestedInt64(objs["Deployment/argocd-applicationset-controller"].Object, "spec", "replicas")
	require.NoError(t, err)
	require.Zero(t, replicas)
	params, _, err := unstructured.NestedStringMap(objs["ConfigMap/argocd-cmd-params-cm"].Object, "data")
	require.NoError(t, err)
	require.Equal(t, "argocd-repo-server.argocd.svc.cluster.local:8081", params["repo.server"])
	require.Equal(t, "*", params["application.namespaces"], "Applications outside its namespace reconcile")
}

// TestWhatArgoCDsPodsReadIsMade: the Secrets and ConfigMaps that the manifests do not have
// are those of the release.
func TestWhatArgoCDsPodsReadIsMade(t *testing.T) {
	r, objs := argoCD(t)
	made := []string{"ConfigMap/argocd-tls-certs-cm"} // by the step tls
	for _, s := range r.Secrets {
		if s.Namespace == r.Engine().Namespace {
			made = append(made, "Secret/"+s.Name)
		}
	}
	for _, m := range r.ConfigMaps {
		if m.Namespace == r.Engine().Namespace {
			made = append(made, "ConfigMap/"+m.Name)
		}
	}
	read := map[string]bool{}
	for _, o := range objs {
		for _, use := range render.Uses(o) {
			read[use] = true
			if objs[use] == nil {
				require.Contains(t, made, use, o.GetName())
			}
		}
	}
	require.True(t, read["Secret/argocd-redis"])
	require.True(t, read["ConfigMap/outgoing-proxy"])
	require.True(t, read["ConfigMap/argocd-ssh-known-hosts-cm"])
	i := slices.IndexFunc(r.Secrets, func(s platform.Secret) bool { return s.Namespace == "argocd" && s.Name == "argocd-redis" })
	require.Equal(t, "auth", r.Secrets[i].Keys[0].Key)
}

// TestTheRepositoryServerAsksTheProxyButNotForTheCluster: it alone reads from outside of it.
func TestTheRepositoryServerAsksTheProxyButNotForTheCluster(t *testing.T) {
	r, objs := argoCD(t)
	for name, o := range objs {
		if o.GetKind() == "Deployment" || o.GetKind() == "StatefulSet" {
			require.Equal(t, name == "Deployment/argocd-repo-server", slices.Contains(render.Uses(o), "ConfigMap/outgoing-proxy"), name)
		}
	}
	env := podOf(t, objs["Deployment/argocd-repo-server"]).Containers[0].EnvFrom
	require.Equal(t, []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "outgoing-proxy"}}}}, env)
	require.Equal(t, map[string]string{"HTTP_PROXY": "{proxy.http}", "HTTPS_PROXY": "{proxy.https}", "NO_PROXY": "{proxy.none}"}, r.ConfigMaps[0].Data)
}
