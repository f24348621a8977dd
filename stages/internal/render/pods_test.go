package render_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

func decode(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	objs, err := kube.Decode([]byte(manifest))
	require.NoError(t, err)
	return objs
}

// workloads has an object of each kind with pods, all with the same pod, and two without.
func workloads(t *testing.T, pod string) []*unstructured.Unstructured {
	t.Helper()
	var spec map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(pod), &spec))
	template := map[string]any{"spec": spec}
	of := func(version, kind string, spec any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "x"}, "spec": spec}}
		return o.DeepCopy()
	}
	var out []*unstructured.Unstructured
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"} {
		out = append(out, of("apps/v1", kind, map[string]any{"template": template}))
	}
	return append(out, of("batch/v1", "Job", map[string]any{"template": template}),
		of("batch/v1", "CronJob", map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}),
		of("v1", "Pod", spec),
		of("v1", "ConfigMap", map[string]any{"template": template}), of("apps/v1", "Deployment", map[string]any{}))
}

// withPods is how many objects of workloads have pods.
const withPods = 7

func TestUsesAreTheConfigMapsAndSecretsThatPodsRead(t *testing.T) {
	all := workloads(t, `
imagePullSecrets: [{name: pulls}]
initContainers:
  - {name: a, envFrom: [{configMapRef: {name: init-map}}, {secretRef: {name: init-secret}}]}
containers:
  - name: b
    env:
      - {name: A, valueFrom: {configMapKeyRef: {name: key-map, key: k}}}
      - {name: B, valueFrom: {secretKeyRef: {name: key-secret, key: k}}}
      - {name: C, valueFrom: {secretKeyRef: {name: key-secret, key: other}}}
      - {name: secret, value: named-like-a-field}
volumes:
  - {name: v1, configMap: {name: volume-map}}
  - {name: v2, secret: {secretName: volume-secret}}
  - {name: v3, projected: {sources: [{configMap: {name: projected-map}}, {secret: {name: projected-secret}}, {serviceAccountToken: {path: t}}]}}
  - {name: v4, emptyDir: {}}
`)
	for i, o := range all {
		if i >= withPods {
			require.Empty(t, render.Uses(o))
			continue
		}
		require.Equal(t, []string{
			"ConfigMap/init-map", "ConfigMap/key-map", "ConfigMap/projected-map", "ConfigMap/volume-map",
			"Secret/init-secret", "Secret/key-secret", "Secret/projected-secret", "Secret/volume-secret",
		}, render.Uses(o), o.GetKind())
	}
}

func TestAShortNameStandsForAnImage(t *testing.T) {
	all := workloads(t, `
initContainers: [{name: a, image: "slipway.local/argocd:3"}]
containers:
  - {name: b, image: "slipway.local/redis@sha256:00"}
  - {name: c, image: redis}
  - {name: d, image: "ghcr.io/dexidp/dex:v2"}
  - {name: e, image: "slipway.local/team/redis"}
  - {name: f}
`)
	render.SetImages(all, map[string]string{"argocd": "slipway.local/argocd@sha256:aa", "redis": "slipway.local/redis@sha256:bb", "argo": "no"})
	for i, o := range all {
		got := render.Images([]*unstructured.Unstructured{o})
		if i >= withPods {
			require.Empty(t, got)
			continue
		}
		require.Equal(t, []string{"ghcr.io/dexidp/dex:v2", "slipway.local/argocd@sha256:aa", "slipway.local/redis@sha256:bb", "slipway.local/team/redis"}, got, "%s: what no name stands for stays", o.GetKind())
	}
}

// TestAnotherImageWithTheSameLastName is not the one that the short name is of.
func TestAnotherImageWithTheSameLastName(t *testing.T) {
	refs := map[string]string{"redis": "own", "public.ecr.aws/docker/library/redis:8-alpine": "own", "quay.io/team/redis:2": "added"}
	for ref, want := range map[string]string{
		"redis":                       "own",
		"redis:8.2":                   "",
		"redis:latest":                "",
		"docker.io/redis":             "",
		"docker.io/bitnami/redis:8.2": "",
		"registry:5000/redis":         "",
		"quay.io/team/redis:2":        "added",
		"public.ecr.aws/docker/library/redis:8-alpine": "own",
		"public.ecr.aws/docker/library/redis:7":        "",
	} {
		all := workloads(t, "containers: [{name: a, image: '"+ref+"'}]")[:1]
		render.SetImages(all, refs)
		if want == "" {
			want = ref
		}
		require.Equal(t, []string{want}, render.Images(all), ref)
	}
}

// TestPodsWithOwnImagesPullWithASecret, and no others.
func TestPodsWithOwnImagesPullWithASecret(t *testing.T) {
	refs := map[string]string{"redis": "r.test/redis@sha256:bb"}
	for image, want := range map[string]string{"r.test/redis@sha256:bb": "[map[name:own] map[name:pull]]", "docker.io/redis:8": "[map[name:own]]"} {
		all := workloads(t, "imagePullSecrets: [{name: own}]\ncontainers: [{name: a, image: '"+image+"'}]")
		for range 2 { // it is there once
			render.AddPullSecret(all, refs, "pull")
		}
		for i, o := range all {
			if i >= withPods {
				require.NotContains(t, text(t, o.Object), "pull}")
				continue
			}
			require.Contains(t, fmt.Sprint(o.Object), "imagePullSecrets:"+want, o.GetKind())
		}
	}
}

func TestHostsAreAddedToThoseOfThePods(t *testing.T) {
	all := workloads(t, `{hostAliases: [{ip: 10.0.0.1, hostnames: [own.example.org]}], containers: [{name: a}]}`)
	before := decode(t, text(t, all[0].Object))[0]
	render.AddHosts(all, nil)
	require.Equal(t, before.Object, all[0].Object)
	render.AddHosts(all, map[string]string{"z.example.org": "10.96.0.7", "a.example.org": "10.96.0.8"})
	for i, o := range all {
		if i >= withPods {
			require.NotContains(t, text(t, o.Object), "10.96.0.7")
			continue
		}
		require.Contains(t, text(t, o.Object), `hostAliases:`, o.GetKind())
		require.Regexp(t, `(?s)own.example.org\s+ip: 10.0.0.1.*a.example.org\s+ip: 10.96.0.8.*z.example.org\s+ip: 10.96.0.7`, text(t, o.Object), o.GetKind())
	}
}

// TestANoteIsOnThePods and so starts them again, but for a Pod, which is not made again.
func TestANoteIsOnThePods(t *testing.T) {
	for i, o := range workloads(t, `{containers: [{name: a}]}`) {
		before := o.DeepCopy()
		require.NoError(t, render.Annotate(o, render.ConfigAnnotation, "d1"))
		if i >= withPods-1 && o.GetKind() != "Deployment" {
			require.Equal(t, before.Object, o.Object, o.GetKind())
			continue
		}
		require.Contains(t, text(t, o.Object), "slipway.sh/config: d1", o.GetKind())
		require.Empty(t, o.GetAnnotations(), "on the pods, not on the object")
	}
	odd := decode(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: odd}, spec: {template: text}}")[0]
	require.ErrorContains(t, render.Annotate(odd, render.ConfigAnnotation, "d1"), "Deployment odd: ")
}

// TestAWholeReferenceStandsForAnImage in whatever way it is written, and wherever a pod is.
func TestAWholeReferenceStandsForAnImage(t *testing.T) {
	const digest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	all := workloads(t, `
initContainers: [{name: a, image: "redis:8"}]
containers:
  - {name: b, image: "index.docker.io/library/redis:8"}
  - {name: c, image: "registry.k8s.io/web:v1@`+digest+`"}
  - {name: d, image: "registry.k8s.io/web:v2"}
  - {name: e, image: "{{ not a reference }}"}
  - {name: f, image: "quay.io/team/short:1"}
  - {name: g, image: short}
volumes: [{name: v, image: {reference: "redis:8", pullPolicy: Always}}, {name: w, emptyDir: {}}]
`)
	custom := decode(t, `
apiVersion: example.org/v1
kind: Rollout
metadata: {name: x}
spec: {deep: [{podTemplate: {spec: {containers: [{name: a, image: "redis:8"}]}}}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: x}
spec: {containers: [{image: "redis:8"}]}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: x}
spec: {source: {helm: {valuesObject: {containers: [{image: "redis:8"}]}}}}
`)
	require.Equal(t, []string{"redis:8"}, render.Images(custom[:1]))
	require.Empty(t, render.Images(custom[1:]), "values and schemas run nothing")
	refs := map[string]string{
		"docker.io/library/redis:8":     "registry.example.com/redis@sha256:aa",
		"registry.k8s.io/web@" + digest: "registry.example.com/web@sha256:bb",
		"short":                         "slipway.local/short@sha256:cc",
		"quay.io/team/short:1":          "registry.example.com/short@sha256:dd",
	}
	render.SetImages(append(all, custom...), refs)
	for i, o := range all {
		if i < withPods {
			require.Equal(t, []string{
				"registry.example.com/redis@sha256:aa", "registry.example.com/short@sha256:dd", "registry.example.com/web@sha256:bb", "registry.k8s.io/web:v2",
				"slipway.local/short@sha256:cc", "{{ not a reference }}",
			}, render.Images([]*unstructured.Unstructured{o}), o.GetKind())
			require.NotContains(t, text(t, o.Object), "redis:8", "nor in a volume")
		}
	}
	require.Equal(t, []string{"registry.example.com/redis@sha256:aa"}, render.Images(custom[:1]))
}
