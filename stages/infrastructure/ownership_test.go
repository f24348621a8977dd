package infrastructure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	byUs = "labels: {" + kube.ManagedBy + ": " + kube.FieldManager + ", " + kube.DeploymentLabel + ": demo}" + written
	used = "labels: {" + kube.DeploymentLabel + ": demo}" + written

	written = ", managedFields: [{manager: " + kube.FieldManager + "}]"

	crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
)

// release is a platform with something of every kind.
func release() map[string]string {
	return map[string]string{
		"platform.yaml": `
apiVersion: slipway/v2
name: shop
version: 1.0.0
namespaces: [{name: shop}]
secrets: [{name: password, namespace: default, keys: [{key: password, generate: password}]}]
configMaps: [{name: settings, namespace: shop, data: {a: b}}]
certificates: [{secret: shop/tls, hosts: ["web.{domain}"]}]
components:
  - {name: web, kind: manifests, path: web, namespace: shop}
  - {name: cache, kind: chart, path: cache, namespace: kube-system}
`,
		"web/web.yaml": `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}, automountServiceAccountToken: false}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: web}}
---
{apiVersion: example.com/v1, kind: Unknown, metadata: {name: web}}
`,
		"cache/Chart.yaml":            "{apiVersion: v2, name: cache, version: 1.0.0}",
		"cache/templates/config.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Release.Name }}-config}}",
		"cache/templates/hook.yaml":   `{apiVersion: v1, kind: ConfigMap, metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}}`,
		"cache/crds/gadgets.yaml":     "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.example.com}, spec: {group: example.com, scope: Namespaced, names: {kind: Gadget, plural: gadgets}, versions: []}}",
	}
}

func wanting(t *testing.T) (*kubetest.API, *step.Env, contract.OwnershipInput) {
	t.Helper()
	api := kubetest.Serve(t)
	api.Define("rbac.authorization.k8s.io/v1", "ClusterRole", false)
	api.Define("v1", "ServiceAccount", true)
	for _, name := range []string{"default", "kube-system"} {
		api.Set(t, "/api/v1/namespaces/"+name, "metadata: {name: "+name+"}")
	}
	env := reaching(t, api.URL)
	env.PlatformDir = t.TempDir()
	for name, text := range release() {
		file := filepath.Join(env.PlatformDir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return api, env, contract.OwnershipInput{Components: []contract.ComponentInput{{Component: "web"}, {Component: "cache"}}}
}

func TestWhatIsSomebodyElsesEndsTheRunOrIsTakenOver(t *testing.T) {
	elsewhere := "labels: {" + kube.DeploymentLabel + ": elsewhere}"
	foreign := map[string]string{ // to what it is called
		"/api/v1/namespaces/shop":                                "Namespace shop (without an owner)",
		"/api/v1/namespaces/default/secrets/password":            "Secret default/password (without an owner)",
		"/api/v1/namespaces/shop/configmaps/settings":            "ConfigMap shop/settings (of the deployment elsewhere)",
		"/api/v1/namespaces/shop/configmaps/slipway-ca":          "ConfigMap shop/slipway-ca (without an owner)",
		"/api/v1/namespaces/shop/secrets/tls":                    "Secret shop/tls (without an owner)",
		"/api/v1/namespaces/shop/configmaps/web":                 "ConfigMap shop/web (without an owner)",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/web":    "ClusterRole web (without an owner)",
		"/api/v1/namespaces/kube-system/configmaps/cache-config": "ConfigMap kube-system/cache-config (without an owner)",
		"/api/v1/namespaces/kube-system/configmaps/hook":         "ConfigMap kube-system/hook (without an owner)",
		crds + "gadgets.example.com":                             "CustomResourceDefinition gadgets.example.com (without an owner)",
	}
	api, env, in := wanting(t)
	api.Set(t, "/api/v1/namespaces/shop/serviceaccounts/default", "metadata: {name: default}") // Kubernetes' own
	api.Set(t, "/api/v1/namespaces/shop/configmaps/another", "metadata: {name: another}")
	_, err := finder{}.ownership(t.Context(), env, in)
	require.NoError(t, err)

	for path := range foreign {
		text := "metadata: {name: " + filepath.Base(path) + "}"
		if part := strings.Split(path, "/"); len(part) == 7 && part[3] == "namespaces" {
			text = "metadata: {name: " + part[6] + ", namespace: " + part[4] + "}"
		}
		api.Set(t, path, text)
	}
	api.Set(t, "/api/v1/namespaces/shop/configmaps/settings", "metadata: {"+elsewhere+"}")
	_, err = finder{}.ownership(t.Context(), env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	for _, name := range foreign {
		require.ErrorContains(t, err, name)
	}
	require.NotContains(t, err.Error(), "another")
	require.NotContains(t, err.Error(), "ServiceAccount")
	require.Empty(t, api.Writes())

	in.TakeOwnership = true
	out, err := finder{}.ownership(t.Context(), env, in)
	require.NoError(t, err)
	require.Len(t, out.TakenOver, len(foreign))
	for path := range foreign {
		labels, _ := api.Get(path)["metadata"].(map[string]any)["labels"].(map[string]any)
		require.Equal(t, "demo", labels[kube.DeploymentLabel], path)
		require.NotContains(t, labels, kube.ManagedBy)
	}
	in.TakeOwnership = false
	out, err = finder{}.ownership(t.Context(), env, in)
	require.NoError(t, err, "it is the deployment's now")
	require.Empty(t, out.TakenOver)
}

// TestTheSecretWithTheAccountIsAmongThem, where there is an account.
func TestTheSecretWithTheAccountIsAmongThem(t *testing.T) {
	api, env, in := wanting(t)
	api.Set(t, "/api/v1/namespaces/shop/secrets/"+kube.PullSecret, "metadata: {name: "+kube.PullSecret+", namespace: shop}")
	_, err := finder{}.ownership(t.Context(), env, in)
	require.NoError(t, err)
	in.PullSecret = true
	_, err = finder{}.ownership(t.Context(), env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
	require.ErrorContains(t, err, "Secret shop/slipway-registry (without an owner)")
}

// TestAnObjectThatLostItsLabelIsOurs: the install that finds it gives it back.
func TestAnObjectThatLostItsLabelIsOurs(t *testing.T) {
	api, env, in := wanting(t)
	api.Set(t, "/api/v1/namespaces/shop/configmaps/web", "metadata: {name: web, managedFields: [{manager: slipway, operation: Apply}]}")
	_, err := finder{}.ownership(t.Context(), env, in)
	require.NoError(t, err)
	api.Set(t, "/api/v1/namespaces/shop/configmaps/web", "metadata: {labels: {"+kube.DeploymentLabel+": elsewhere}}")
	_, err = finder{}.ownership(t.Context(), env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
}

// TestANamespaceOfAnotherDeploymentIsOnlyUsed: a destroy of the one that takes it over
// leaves it; and Slipway's own namespace is not taken over at all.
func TestANamespaceOfAnotherDeploymentIsOnlyUsed(t *testing.T) {
	api, env, in := wanting(t)
	const elsewhere = "labels: {" + kube.ManagedBy + ": slipway, " + kube.DeploymentLabel + ": elsewhere}"
	in.TakeOwnership = true
	api.Set(t, "/api/v1/namespaces/shop", "metadata: {name: shop, "+elsewhere+"}")
	out, err := finder{}.ownership(t.Context(), env, in)
	require.NoError(t, err)
	require.Equal(t, []string{"Namespace shop (of the deployment elsewhere)"}, out.TakenOver)
	labels := api.Get("/api/v1/namespaces/shop")["metadata"].(map[string]any)["labels"]
	require.Equal(t, map[string]any{kube.DeploymentLabel: "demo"}, labels)

	before := api.Writes()
	api.Set(t, "/api/v1/namespaces/slipway-system", "metadata: {name: slipway-system, "+elsewhere+"}")
	_, err = finder{}.ownership(t.Context(), env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
	require.ErrorContains(t, err, "the deployment elsewhere, whose namespace slipway-system cannot be taken over")
	require.Equal(t, before, api.Writes())
}

// TestWhatArgoCDIsToOwnIsLookedForToo, until it does: else somebody else's release, Argo CD
// itself among them, would be taken over.
func TestWhatArgoCDIsToOwnIsLookedForToo(t *testing.T) {
	api, env, in := wanting(t)
	api.Define("argoproj.io/v1alpha1", "Application", true)
	file := filepath.Join(env.PlatformDir, "platform.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
apiVersion: slipway/v2
name: shop
version: 1.0.0
namespaces: [{name: shop}]
components:
  - {name: argocd, kind: manifests, path: web, namespace: shop, required: true}
  - {name: cache, kind: adopted, path: gitops/cache, namespace: kube-system, required: true}
gitops: {engine: argocd}
`), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(env.PlatformDir, "gitops"), 0o700))
	require.NoError(t, os.Rename(filepath.Join(env.PlatformDir, "cache"), filepath.Join(env.PlatformDir, "gitops", "cache")))
	in.Components = []contract.ComponentInput{{Component: "argocd"}, {Component: "cache"}}
	api.Set(t, "/api/v1/namespaces/kube-system/configmaps/cache-config", "metadata: {name: cache-config, namespace: kube-system}")
	_, err := finder{}.ownership(t.Context(), env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
	require.ErrorContains(t, err, "ConfigMap kube-system/cache-config (without an owner)")

	app := "/apis/argoproj.io/v1alpha1/namespaces/shop/applications/cache"
	api.Set(t, app, "metadata: {name: cache, namespace: shop}")
	_, err = finder{}.ownership(t.Context(), env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign}, "the Application is somebody's")
	api.Set(t, app, "metadata: {labels: {"+kube.DeploymentLabel+": demo, "+kube.AdoptedLabel+": component}}")
	_, err = finder{}.ownership(t.Context(), env, in)
	require.NoError(t, err, "Argo CD owns it")

	api.Delete(app)
	api.Set(t, "/api/v1/namespaces/kube-system", "metadata: {labels: {"+kube.ManagedBy+": slipway, "+kube.DeploymentLabel+": demo}}")
	_, err = finder{}.ownership(t.Context(), env, in)
	require.NoError(t, err, "a destroy that was interrupted left it in a namespace that Slipway made")
}

// TestAHookThatANewerChartAddsIsLookedForToo: nothing would end Helm's taking it over.
func TestAHookThatANewerChartAddsIsLookedForToo(t *testing.T) {
	api, env, in := wanting(t)
	hook := "/api/v1/namespaces/kube-system/configmaps/hook"
	api.Set(t, hook, "metadata: {name: hook, namespace: kube-system, managedFields: [{manager: slipway, operation: Update}]}")
	_, err := finder{}.ownership(t.Context(), env, in)
	require.NoError(t, err, "Helm made it for the deployment")
	api.Set(t, hook, "metadata: {managedFields: null}")
	_, err = finder{}.ownership(t.Context(), env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
	require.ErrorContains(t, err, "ConfigMap kube-system/hook (without an owner)")
}

// TestAReleaseThatMayNotFollowEndsTheRun before anything is made.
func TestAReleaseThatMayNotFollowEndsTheRun(t *testing.T) {
	api, env, in := wanting(t)
	client, err := kube.Connect(env.Kubeconfig, nil)
	require.NoError(t, err)
	for _, c := range []struct {
		record  installed.Record
		upgrade bool
		code    fault.Code
	}{
		{installed.Record{Platform: "shop", Version: "2.0.0"}, false, installed.CodeNotOver},
		{installed.Record{Platform: "shop", Version: "0.9.0", Toward: "0.9.1"}, false, installed.CodeUnfinished},
		{installed.Record{Platform: "shop", Version: "1.0.0"}, true, platform.CodeSame},
	} {
		require.NoError(t, c.record.Keep(t.Context(), client, "demo"))
		in.Upgrade = c.upgrade
		_, err := finder{}.ownership(t.Context(), env, in)
		require.ErrorIs(t, err, &fault.Fault{Code: c.code}, c.record)
	}
	before := api.Writes()
	in.Upgrade = false
	_, err = finder{}.ownership(t.Context(), env, in)
	require.NoError(t, err, "an install of the same")
	require.Equal(t, before, api.Writes())
}

// TestRightsOverTheKindsOfARelease are asked for before anything is made; what it defines itself,
// and what every platform has, is not among them.
func TestRightsOverTheKindsOfARelease(t *testing.T) {
	api, env, in := wanting(t)
	file := filepath.Join(env.PlatformDir, "web/web.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(text, "---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}}\n---\n{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}}\n"...), 0o600))
	api.Define("policy/v1", "PodDisruptionBudget", true)
	api.Forbidden = []string{"create secrets", "create poddisruptionbudgets", "delete poddisruptionbudgets", "get horizontalpodautoscalers", "watch unknowns"}
	_, err = finder{}.ownership(t.Context(), env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: CodePreflight})
	require.ErrorContains(t, err, "2 requirements are not met:\n  the credentials may not get horizontalpodautoscalers.autoscaling; allow it in all namespaces\n"+
		"  the credentials may not create, delete poddisruptionbudgets.policy; allow it in all namespaces")
	api.Forbidden = []string{"create secrets"}
	_, err = finder{}.ownership(t.Context(), env, in)
	require.NoError(t, err, "the preflight has asked for that")
}
