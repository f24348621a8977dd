package infrastructure

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/lint"
	"github.com/slipway-sh/slipway/stages/step"
)

// appTree has the app pages, whose namespace was there before, and shop in one of Slipway's.
func appTree(*platform.Release, string, contract.TreeValues) (lint.Tree, error) {
	app := func(name, namespace string) []byte {
		return []byte("{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: " + name + ", namespace: cd}, spec: {destination: {namespace: " + namespace +
			"}, source: {repoURL: x, path: apps/" + name + "}}}")
	}
	chart := func(name string) []byte { return []byte("{apiVersion: v2, name: " + name + ", version: 1.0.0}") }
	return lint.Tree{Chart: "root", Values: "own.yaml", Files: map[string][]byte{
		"root/Chart.yaml": chart("root"), "root/own.yaml": []byte("{}"),
		"root/templates/pages.yaml": app("pages", "team"), "root/templates/shop.yaml": app("shop", "shop"),
		"apps/pages/Chart.yaml": chart("pages"),
		"apps/pages/templates/all.yaml": []byte(`
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: platform-data}, value: 1}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}}
{{- if .Capabilities.APIVersions.Has "example.com/v1/Gadget" }}
---
{apiVersion: example.com/v1, kind: Gadget, metadata: {name: pages}}
{{- end }}
`),
		"apps/pages/crds/widgets.yaml":  []byte("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}}"),
		"apps/shop/Chart.yaml":          chart("shop"),
		"apps/shop/templates/shop.yaml": []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: shop}}"),
	}}, nil
}

const (
	classes = "/apis/scheduling.k8s.io/v1/priorityclasss/" // as kubetest has the plural
	team    = "/api/v1/namespaces/team/configmaps/"
	gadget  = "/apis/example.com/v1/namespaces/team/gadgets/pages"
	argoCD  = "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/"
)

func withApps(t *testing.T) (*kubetest.API, *step.Env, contract.OwnershipInput) {
	t.Helper()
	api := kubetest.Serve(t)
	api.Define("scheduling.k8s.io/v1", "PriorityClass", false)
	api.Define("example.com/v1", "Gadget", true)
	api.Define("argoproj.io/v1alpha1", "Application", true)
	api.Define("argoproj.io/v1alpha1", "AppProject", true)
	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/cd/appprojects/default", "{metadata: {name: default, namespace: cd}, "+"spec: {destinations: [{server: '*', namespace: '*'}], clusterResourceWhitelist: [{group: '*', kind: '*'}]}"+"}")
	api.Define("v1", "ServiceAccount", true)
	api.Set(t, "/api/v1/namespaces/team", "metadata: {name: team, labels: {"+kube.DeploymentLabel+": demo}}") // taken over
	api.Set(t, "/api/v1/namespaces/shop", "metadata: {name: shop, labels: {"+kube.ManagedBy+": slipway, "+kube.DeploymentLabel+": demo}}")
	api.Set(t, "/api/v1/namespaces/shop/configmaps/shop", "metadata: {name: shop, namespace: shop}")            // goes with its namespace
	api.Set(t, "/api/v1/namespaces/team/serviceaccounts/default", "metadata: {name: default, namespace: team}") // Kubernetes' own
	api.Set(t, argoCD+"root", "metadata: {name: root, namespace: cd, uid: root, "+used+"}")                     // of an earlier run
	env := reaching(t, api.URL)
	env.PlatformDir = t.TempDir()
	tree, err := appTree(nil, "", contract.TreeValues{})
	require.NoError(t, err)
	files := map[string][]byte{"argocd/a.yaml": []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), platform.File: []byte(`
apiVersion: slipway/v2
name: shop
version: 1.0.0
namespaces: [{name: cd}, {name: team}, {name: shop}]
gitops: {engine: argocd, tree: gitops, project: {name: apps}}
components:
  - {name: argocd, kind: manifests, path: argocd, namespace: cd, required: true}
  - {name: pages, kind: app, path: gitops/apps/pages, namespace: team}
  - {name: shop, kind: app, path: gitops/apps/shop, namespace: shop}
`)}
	for name, text := range tree.Files {
		files["gitops/"+name] = text
	}
	for name, text := range files {
		file := filepath.Join(env.PlatformDir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	return api, env, contract.OwnershipInput{Apps: &contract.TreeValues{}}
}

// TestWhatIsInTheWayOfAnAppEndsTheRunOrIsTakenOver: Argo CD would take it over, and the
// destroy would remove it.
func TestWhatIsInTheWayOfAnAppEndsTheRunOrIsTakenOver(t *testing.T) {
	api, env, in := withApps(t)
	f := finder{build: appTree}
	out, err := f.ownership(t.Context(), env, in)
	require.NoError(t, err)
	require.Greater(t, out.Objects, 6)

	foreign := map[string]string{ // to what it is called
		classes + "platform-data":    "PriorityClass platform-data (without an owner)",
		team + "settings":            "ConfigMap team/settings (without an owner)",
		team + "hook":                "ConfigMap team/hook (without an owner)",
		gadget:                       "Gadget team/pages (of the deployment elsewhere)",
		crds + "widgets.example.com": "CustomResourceDefinition widgets.example.com (without an owner)",
	}
	api.Set(t, classes+"platform-data", "{metadata: {name: platform-data}, value: 1}")
	api.Set(t, team+"settings", "metadata: {name: settings, namespace: team}")
	api.Set(t, team+"hook", "metadata: {name: hook, namespace: team, annotations: {"+kube.TrackingID+": 'theirs:/ConfigMap:team/hook'}, managedFields: [{manager: argocd-controller}]}")
	api.Set(t, gadget, "metadata: {name: pages, namespace: team, labels: {"+kube.DeploymentLabel+": elsewhere}, annotations: {"+kube.TrackingID+": 'pages:example.com/Gadget:team/pages'}}")
	api.Set(t, crds+"widgets.example.com", "metadata: {name: widgets.example.com}")
	_, err = f.ownership(t.Context(), env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
	for _, name := range foreign {
		require.ErrorContains(t, err, name)
	}
	require.NotContains(t, err.Error(), "shop")
	require.NotContains(t, err.Error(), "ServiceAccount")
	require.Empty(t, api.Writes())

	in.TakeOwnership = true
	out, err = f.ownership(t.Context(), env, in)
	require.NoError(t, err)
	require.Len(t, out.TakenOver, len(foreign))
	in.TakeOwnership = false
	_, err = f.ownership(t.Context(), env, in)
	require.NoError(t, err, "it is the deployment's now")
}

// TestWhatAnAppHasBroughtIsNotInItsWay, also where it came with another one.
func TestWhatAnAppHasBroughtIsNotInItsWay(t *testing.T) {
	api, env, in := withApps(t)
	f := finder{build: appTree}
	mark := func(app, what string) string {
		return "annotations: {" + kube.TrackingID + ": '" + app + ":" + what + "'}"
	}
	api.Set(t, classes+"platform-data", "metadata: {name: platform-data, "+mark("pages", "scheduling.k8s.io/PriorityClass:/platform-data")+"}")
	api.Set(t, team+"settings", "metadata: {name: settings, namespace: team, "+mark("former", "/ConfigMap:team/settings")+"}")
	api.Set(t, crds+"widgets.example.com", "metadata: {name: widgets.example.com, managedFields: [{manager: argocd-controller}]}")
	_, err := f.ownership(t.Context(), env, in)
	require.ErrorContains(t, err, "ConfigMap team/settings", "former is nobody of the deployment's")
	require.NotContains(t, err.Error(), "PriorityClass")
	require.NotContains(t, err.Error(), "CustomResourceDefinition", "Argo CD marks none")

	api.Set(t, argoCD+"root", "status: {resources: [{group: argoproj.io, kind: Application, namespace: cd, name: former}]}")
	api.Set(t, argoCD+"former", "metadata: {name: former, namespace: cd, uid: former, "+mark("root", "argoproj.io/Application:cd/former")+"}")
	_, err = f.ownership(t.Context(), env, in)
	require.NoError(t, err)

	api.Set(t, classes+"platform-data", "metadata: {"+mark("pages", "scheduling.k8s.io/PriorityClass:/another")+"}")
	_, err = f.ownership(t.Context(), env, in)
	require.ErrorContains(t, err, "PriorityClass platform-data", "it is a copy")

	api.Set(t, classes+"platform-data", "metadata: {"+mark("pages", "scheduling.k8s.io/PriorityClass:/platform-data")+"}")
	api.Delete(argoCD + "root")
	api.Delete(argoCD + "former")
	in.Upgrade = true
	_, err = f.ownership(t.Context(), env, in)
	require.ErrorContains(t, err, "PriorityClass platform-data", "nothing of the deployment's has brought anything")
	require.ErrorContains(t, err, "CustomResourceDefinition widgets.example.com", "it is of another Argo CD")
	var is *fault.Fault
	require.ErrorAs(t, err, &is)
	require.Contains(t, is.Fix, "slipway upgrade --take-ownership")
}
