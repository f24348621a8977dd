package component

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	atProject  = "/apis/argoproj.io/v1alpha1/namespaces/shop/appprojects/slipway-adopted-eso"
	atESO      = "/apis/argoproj.io/v1alpha1/namespaces/shop/applications/eso"
	atOperator = "/apis/apps/v1/namespaces/shop/deployments/eso"
	atList     = "/api/v1/namespaces/slipway-system/secrets/eso-objects"
)

// esoFiles are a chart with a definition, a hook, and objects of the cluster's own scope
// and in another namespace.
func esoFiles() map[string]string {
	return map[string]string{
		"argocd.yaml":                     pageYAML,
		"gitops/eso/Chart.yaml":           "{apiVersion: v2, name: eso, version: 1.0.0}",
		"gitops/eso/crds/stores.yaml":     "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: stores.example.com}\nspec: {group: example.com, scope: Cluster, names: {kind: Store}}\n",
		"gitops/eso/templates/eso.yaml":   "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}}\nspec: {replicas: {{ .Values.replicas }}}\n---\n{apiVersion: example.com/v1, kind: Store, metadata: {name: all}}\n",
		"gitops/eso/templates/other.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: eso, namespace: default}}\n{{ if .Capabilities.APIVersions.Has \"example.com/v9\" }}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: never}}\n{{ end }}\n",
		"gitops/eso/templates/hook.yaml":  "{apiVersion: batch/v1, kind: Job, metadata: {name: prepare, annotations: {helm.sh/hook: pre-install}}}\n",
	}
}

// eso is a cluster with a component that Slipway has installed and Argo CD is to have. Its
// controller brings an Application to health as they ask.
func eso(t *testing.T, engine string, health string) *fixture {
	t.Helper()
	s := newFixture(t, `
  - {name: argocd, kind: manifests, path: argocd.yaml, namespace: shop, required: true}
  - {name: eso, kind: adopted, path: gitops/eso, namespace: shop, required: true, values: {replicas: "{settings.replicas}", host: "eso.{domain}"}, ready: [{rollout: apps/v1/Deployment shop/eso}]}
gitops: {engine: `+engine+`}
`, esoFiles())
	for _, kind := range []string{"Application", "AppProject"} {
		s.api.Define("argoproj.io/v1alpha1", kind, true)
	}
	s.api.Define("example.com/v1", "Store", false)
	at := s.api.Controller
	s.api.Controller = func(path string, o map[string]any) {
		at(path, o)
		if path == atESO {
			delete(o["metadata"].(map[string]any), "annotations") // compared
			source := o["spec"].(map[string]any)["source"]
			o["status"] = map[string]any{
				"sync":   map[string]any{"status": "Synced", "revision": "abc", "comparedTo": map[string]any{"source": source}},
				"health": map[string]any{"status": health},
			}
		}
	}
	s.api.Set(t, atOperator, `{metadata: {managedFields: [
  {manager: slipway, operation: Update, fieldsV1: {"f:spec": {}}}, {manager: kube-controller-manager, operation: Update, subresource: status},
  {manager: argocd-controller, operation: Apply, fieldsV1: {"f:spec": {}}}]}, spec: {replicas: 1}, status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}}`)
	return s
}

func operatorInput() contract.HandoverInput {
	return contract.HandoverInput{
		ComponentInput: contract.ComponentInput{Component: "eso", Fill: map[string]any{"settings.replicas": 2, "domain": "example.org"}, Values: json.RawMessage(`{"host":"own"}`)},
		Tree:           contract.Tree{Namespace: "shop", Repository: "https://git/slipway/platform.git", Target: "main", Path: "tree", Revision: "abc"},
	}
}

// listESO is what the first install wrote down.
func (s *fixture) listESO(t *testing.T) {
	t.Helper()
	require.NoError(t, s.installer(t, operatorInput().ComponentInput).client.KeepMembers(t.Context(), "demo", kube.ObjectsOf("eso"), nil))
	require.NotNil(t, s.api.Get(atList))
}

func TestArgoCDTakesAComponentOver(t *testing.T) {
	s := eso(t, "argocd", "Healthy")
	s.listESO(t)
	_, err := step.Unchanged(adopt)(t.Context(), s.env, operatorInput())
	require.ErrorIs(t, err, plan.ErrChange)
	require.Nil(t, s.api.Get(atESO))

	out, err := adopt(t.Context(), s.env, operatorInput())
	require.NoError(t, err)
	require.Equal(t, 5, out.Objects)
	require.Equal(t, 2, out.Changed)

	require.Equal(t, map[string]any{"repoURL": "https://git/slipway/platform.git", "targetRevision": "main", "path": "tree/eso", "helm": map[string]any{
		"releaseName": "eso", "valuesObject": map[string]any{"replicas": int64(2), "host": "own"},
	}}, s.at(atESO, "spec", "source"), "the same chart, name and values as Helm had")
	require.Equal(t, []any{"ServerSideApply=true"}, s.at(atESO, "spec", "syncPolicy", "syncOptions"))
	require.Equal(t, "slipway-adopted-eso", s.at(atESO, "spec", "project"))
	require.Equal(t, []any{"resources-finalizer.argocd.argoproj.io"}, s.at(atESO, "metadata", "finalizers"))
	require.Equal(t, kube.AdoptedOther, s.at(atESO, "metadata", "labels", kube.AdoptedLabel))

	kind := func(group, kind string) map[string]any { return map[string]any{"group": group, "kind": kind} }
	require.Equal(t, []any{kind("apiextensions.k8s.io", "CustomResourceDefinition"), kind("example.com", "Store")}, s.at(atProject, "spec", "clusterResourceWhitelist"))
	require.Equal(t, []any{kind("", "ConfigMap"), kind("apps", "Deployment"), kind("batch", "Job")}, s.at(atProject, "spec", "namespaceResourceWhitelist"))
	require.Len(t, s.at(atProject, "spec", "destinations"), 2)

	require.Nil(t, s.api.Get(atList), "it has one owner")
	var managers []string
	for _, f := range s.at(atOperator, "metadata", "managedFields").([]any) {
		managers = append(managers, f.(map[string]any)["manager"].(string))
	}
	require.Equal(t, []string{"kube-controller-manager", "argocd-controller"}, managers, "so that a field that the chart drops goes")

	written := func() int {
		n := 0
		for _, w := range s.writes() {
			if w != "PATCH "+atESO { // it is compared anew each time
				n++
			}
		}
		return n
	}
	before := written()
	_, err = step.Unchanged(adopt)(t.Context(), s.env, operatorInput())
	require.NoError(t, err)
	again, err := s.install(t.Context(), operatorInput().ComponentInput)
	require.NoError(t, err)
	require.Equal(t, contract.Component{}, again, "Slipway leaves it alone")
	require.Equal(t, before, written())
	require.Contains(t, s.shown.String(), "it is left to Argo CD, whose Application eso owns it")
}

// TestWhatAPushAddedToAnAdoptedApplicationGoes, and a dry run sees it.
func TestWhatAPushAddedToAnAdoptedApplicationGoes(t *testing.T) {
	s := eso(t, "argocd", "Healthy")
	_, err := adopt(t.Context(), s.env, operatorInput())
	require.NoError(t, err)
	want := s.at(atESO, "spec")
	s.api.Set(t, atESO, `spec: {ignoreDifferences: [{kind: Deployment}], source: {helm: {valuesObject: {image: other}}}}`)
	_, err = step.Unchanged(adopt)(t.Context(), s.env, operatorInput())
	require.ErrorIs(t, err, plan.ErrChange)
	require.NotEqual(t, want, s.at(atESO, "spec"))
	_, err = adopt(t.Context(), s.env, operatorInput())
	require.NoError(t, err)
	require.Equal(t, want, s.at(atESO, "spec"))
}

// TestArgoCDItselfIsNotRemovedByItself: its Application goes without what it owns.
func TestArgoCDItselfIsNotRemovedByItself(t *testing.T) {
	s := eso(t, "eso", "Healthy")
	_, err := adopt(t.Context(), s.env, operatorInput())
	require.NoError(t, err)
	require.Nil(t, s.at(atESO, "metadata", "finalizers"))
	require.Equal(t, kube.AdoptedEngine, s.at(atESO, "metadata", "labels", kube.AdoptedLabel))
}

func TestAnAdoptedComponentThatDoesNotGetHealthy(t *testing.T) {
	s := eso(t, "argocd", "Degraded")
	s.listESO(t)
	in := operatorInput()
	in.Deadline = 1
	_, err := adopt(t.Context(), s.env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: argo.CodeLate})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.ErrorContains(t, err, "Degraded")
	require.NotNil(t, s.api.Get(atList), "Slipway lets go only of what Argo CD has")

	in.Tree.Revision = "def"
	_, err = adopt(t.Context(), s.env, in)
	require.ErrorContains(t, err, "at revision abc")
}

// TestAnApplicationOfAnother is never taken for the component's.
func TestAnApplicationOfAnother(t *testing.T) {
	for _, labels := range []string{"{}", "{slipway.sh/deployment: other, slipway.sh/adopted: component}", "{slipway.sh/deployment: demo}"} {
		s := eso(t, "argocd", "Healthy")
		s.api.Set(t, atESO, "{metadata: {name: eso, namespace: shop, labels: "+labels+"}}")
		_, err := s.install(t.Context(), operatorInput().ComponentInput)
		refused(t, err, kube.CodeForeign, "install component eso: the Application shop/eso is not the deployment's own")
		_, err = adopt(t.Context(), s.env, operatorInput())
		require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
		require.Empty(t, s.writes())
	}
}

// TestAnAdoptedChartIsCompletedByAMarkOnly: what else Slipway adds to a chart's objects,
// Argo CD would not have.
func TestAnAdoptedChartIsCompletedByAMarkOnly(t *testing.T) {
	s := eso(t, "argocd", "Healthy")
	i := s.installer(t, operatorInput().ComponentInput)
	i.in.Rewrite = map[string]string{"docker.io/library/nginx:1": "registry/nginx@sha256:00"}
	objs, err := kube.Decode([]byte(`apiVersion: apps/v1
kind: Deployment
metadata: {name: eso, namespace: shop}
spec: {template: {spec: {containers: [{name: a, image: "docker.io/library/nginx:1", envFrom: [{secretRef: {name: generated}}]}]}}}
`))
	require.NoError(t, err)
	want := objs[0].DeepCopy()
	want.SetLabels(map[string]string{kube.DeploymentLabel: "demo"})
	require.NoError(t, i.prepare(t.Context(), objs, map[string]string{kube.DeploymentLabel: "demo"}))
	require.Equal(t, want.Object, objs[0].Object)

	ch, _, err := i.loadChart(t.Context())
	require.NoError(t, err)
	s.api.Set(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/stores.example.com", "status: {conditions: [{type: Established, status: 'True'}]}")
	_, err = i.crds(t.Context(), ch)
	require.NoError(t, err)
	require.Equal(t, map[string]any{kube.DeploymentLabel: "demo"}, s.at("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/stores.example.com", "metadata", "labels"))
}
