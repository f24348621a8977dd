package installed

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
)

const (
	byUs = "labels: {" + kube.ManagedBy + ": " + kube.FieldManager + ", " + kube.DeploymentLabel + ": demo}" + written
	used = "labels: {" + kube.DeploymentLabel + ": demo}" + written

	written = ", managedFields: [{manager: " + kube.FieldManager + "}]"

	// anything is what an AppProject allows that bounds nothing.
	anything = "spec: {destinations: [{server: '*', namespace: '*'}], clusterResourceWhitelist: [{group: '*', kind: '*'}]}"

	crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
)

// shared is a cluster that others use too.
func shared(t *testing.T) (*kubetest.API, *kube.Client) {
	t.Helper()
	api := kubetest.Serve(t)
	api.Define("rbac.authorization.k8s.io/v1", "ClusterRole", false)
	api.Define("argoproj.io/v1alpha1", "Application", true)
	api.Define("argoproj.io/v1alpha1", "ApplicationSet", true)
	api.Define("argoproj.io/v1alpha1", "AppProject", true)
	api.Set(t, argoAPI+"appprojects/default", "{metadata: {name: default, namespace: shop}, "+anything+"}")
	api.Define("example.com/v1", "Widget", true)
	for path, text := range ours() {
		api.Set(t, path, text)
	}
	for path, text := range ofOthers() {
		api.Set(t, path, text)
	}
	c, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	record(t, c, func(*Removal) {})
	cache := kube.Member{Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, Namespace: "kube-system", Name: "cache"}
	require.NoError(t, c.KeepMembers(t.Context(), "demo", kube.ObjectsOf("cache"), []kube.Member{cache}))
	require.NoError(t, c.LabelNode(t.Context(), "demo", "cache", "one", "storage", "fast"))
	return api, c
}

// ours is what the deployment demo has in the cluster.
func ours() map[string]string {
	return map[string]string{
		"/api/v1/namespaces/slipway-system":                   "metadata: {name: slipway-system, " + byUs + "}",
		"/api/v1/namespaces/shop":                             "metadata: {name: shop, creationTimestamp: '2026-01-02T00:00:00Z', " + byUs + "}",
		"/api/v1/namespaces/shop/configmaps/by-hand":          "metadata: {name: by-hand, namespace: shop}",
		"/api/v1/namespaces/shop/services/web":                "{metadata: {name: web, namespace: shop}, spec: {type: LoadBalancer}}",
		"/api/v1/namespaces/shop/secrets/password":            "metadata: {name: password, namespace: shop, " + byUs + "}",
		"/api/v1/namespaces/shop/persistentvolumeclaims/rows": "metadata: {name: rows, namespace: shop, uid: rows-1}",
		"/api/v1/persistentvolumes/rows":                      volume("rows", "shop", "rows", "rows-1", "2026-01-03T00:00:00Z"),
		// The claim of an earlier version, in the namespace that is ours.
		"/api/v1/persistentvolumes/former": volume("former", "shop", "former", "former-1", "2026-01-03T00:00:00Z"),
		// What a component has in a namespace of others.
		"/apis/apps/v1/namespaces/kube-system/statefulsets/cache": "{metadata: {name: cache, namespace: kube-system, " + used +
			"}, spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}",
		"/api/v1/namespaces/kube-system/persistentvolumeclaims/data-cache-0": "metadata: {name: data-cache-0, namespace: kube-system, uid: cache-1}",
		"/api/v1/persistentvolumes/cache":                                    volume("cache", "kube-system", "data-cache-0", "cache-1", "2026-01-03T00:00:00Z"),
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/web":                "metadata: {name: web, " + used + "}",
		crds + "gadgets.example.com":                                         definition("gadget"),
		"/api/v1/nodes/one":                                                  "metadata: {name: one, uid: one-1, labels: {zone: a}}",
	}
}

// ofOthers is what others have there.
func ofOthers() map[string]string {
	return map[string]string{
		"/api/v1/namespaces/default":                        "metadata: {name: default}",
		"/api/v1/namespaces/kube-system":                    "metadata: {name: kube-system}",
		"/api/v1/namespaces/team":                           "metadata: {name: team}",
		"/api/v1/namespaces/other":                          "metadata: {name: other, labels: {" + kube.ManagedBy + ": slipway, " + kube.DeploymentLabel + ": other}}",
		"/api/v1/namespaces/team/configmaps/theirs":         "metadata: {name: theirs, namespace: team}",
		"/api/v1/namespaces/team/services/site":             "{metadata: {name: site, namespace: team}, spec: {type: LoadBalancer}}",
		"/api/v1/namespaces/team/secrets/sh.helm.release.1": "{metadata: {name: sh.helm.release.1, namespace: team, labels: {owner: helm, name: web}}, type: helm.sh/release.v1}",
		"/api/v1/nodes/two":                                 "metadata: {name: two, labels: {storage: fast}}",
		// Released, their namespaces are gone; one of them had the name of one that is ours now.
		"/api/v1/persistentvolumes/released":                                  volume("released", "gone", "rows", "x", "2026-01-01T00:00:00Z"),
		"/api/v1/persistentvolumes/namesake":                                  volume("namesake", "shop", "rows", "y", "2026-01-01T00:00:00Z"),
		"/api/v1/persistentvolumes/lent":                                      "{metadata: {name: lent}, spec: {claimRef: {namespace: shop, name: rows, uid: rows-1}, persistentVolumeReclaimPolicy: Retain}}",
		"/api/v1/namespaces/kube-system/persistentvolumeclaims/data-cached-0": "metadata: {name: data-cached-0, namespace: kube-system, uid: z}",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/theirs":              "metadata: {name: theirs}",
		"/apis/argoproj.io/v1alpha1/namespaces/team/applications/theirs":      "metadata: {name: theirs, namespace: team}",
		"/apis/example.com/v1/namespaces/team/widgets/theirs":                 "metadata: {name: theirs, namespace: team}",
	}
}

func volume(name, namespace, claim, uid, created string) string {
	return "{metadata: {name: " + name + ", creationTimestamp: '" + created + "', annotations: {pv.kubernetes.io/provisioned-by: disk}}, " +
		"spec: {persistentVolumeReclaimPolicy: Retain, claimRef: {namespace: " + namespace + ", name: " + claim + ", uid: " + uid + "}}}"
}

func definition(name string) string {
	return "{metadata: {name: " + name + "s.example.com, " + byUs + "}, spec: {group: example.com, names: {plural: " + name + "s}, versions: [{name: v1, served: true}]}}"
}

func remover(c *kube.Client) *Remover {
	return &Remover{Client: c, Deployment: "demo", Log: slog.New(slog.DiscardHandler), Progress: func(string, ...any) {}}
}

// untouched checks that everything of others is as it was.
func untouched(t *testing.T, api *kubetest.API) {
	t.Helper()
	fresh := kubetest.Serve(t)
	for path, text := range ofOthers() {
		fresh.Set(t, path, text)
		require.Equal(t, fresh.Get(path), api.Get(path), path)
	}
}

// removed removes the deployment, as a destroy does: in two steps.
func removed(ctx context.Context, client *kube.Client, in contract.RemoveInput) (contract.Removed, error) {
	out, err := remover(client).Platform(ctx, in.CRDs)
	if err != nil || out.Unreachable != "" {
		return out, err
	}
	for _, gone := range out.Cluster {
		if strings.HasPrefix(gone, definitionKind) {
			return out, errors.New(gone + " went with the platform")
		}
	}
	then, err := remover(client).CRDs(ctx, in.CRDs)
	out.Namespaces, out.Objects = append(out.Namespaces, then.Namespaces...), append(out.Objects, then.Objects...)
	out.Cluster, out.Stripped = append(out.Cluster, then.Cluster...), append(out.Stripped, then.Stripped...)
	for _, kept := range then.Kept {
		if !slices.Contains(out.Kept, kept) {
			out.Kept = append(out.Kept, kept)
		}
	}
	slices.Sort(out.Namespaces)
	return out, err
}

// empty checks that nothing of the deployment is left.
func empty(t *testing.T, client *kube.Client) {
	t.Helper()
	left, err := remover(client).Inventory(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, left.Names)
}

func TestOnlyWhatIsOursIsCountedAndRemoved(t *testing.T) {
	api, client := shared(t)
	left, err := remover(client).Inventory(t.Context(), false)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"Namespace shop", "Namespace slipway-system", "PersistentVolume former", "PersistentVolume rows", "PersistentVolumeClaim shop/rows", "Service shop/web",
		"label storage of Node one", "StatefulSet kube-system/cache", "CustomResourceDefinition gadgets.example.com", "ClusterRole web",
	}, left.Names)

	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"shop", "slipway-system"}, out.Namespaces)
	require.ElementsMatch(t, []string{"cache", "former", "rows"}, out.Volumes)
	require.Equal(t, []string{"cache"}, out.Components)
	require.Equal(t, []string{"PersistentVolumeClaim kube-system/data-cache-0"}, out.Objects)
	require.ElementsMatch(t, []string{"ClusterRole/web", "CustomResourceDefinition/gadgets.example.com"}, out.Cluster)
	require.Equal(t, []string{"one"}, out.Nodes)
	require.Empty(t, out.Kept)
	for path := range ours() {
		if path != "/api/v1/nodes/one" {
			require.Nil(t, api.Get(path), path)
		}
	}
	node, _ := api.Get("/api/v1/nodes/one")["metadata"].(map[string]any)
	require.Equal(t, map[string]any{"zone": "a"}, node["labels"])
	require.Empty(t, node["annotations"])
	untouched(t, api)
	empty(t, client)

	out, err = removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.Equal(t, contract.Removed{}, out, "the second removal has nothing to do")
}

// TestAnInterruptedRemovalFindsItsVolumesAgain: their namespace is gone.
func TestAnInterruptedRemovalFindsItsVolumesAgain(t *testing.T) {
	api, client := shared(t)
	found(t, client)
	api.Delete("/api/v1/namespaces/shop")
	api.Delete("/api/v1/namespaces/shop/persistentvolumeclaims/rows")

	left, err := remover(client).Inventory(t.Context(), false)
	require.NoError(t, err)
	require.Subset(t, left.Names, []string{"PersistentVolume cache", "PersistentVolume former", "PersistentVolume rows"})
	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"cache", "former", "rows"}, out.Volumes)
	untouched(t, api)
	empty(t, client)
}

// found is a remover that has looked at the cluster.
func found(t *testing.T, client *kube.Client) *deployment {
	t.Helper()
	r, err := remover(client).deployment(t.Context(), false)
	require.NoError(t, err)
	var usual Removal
	usual.Remove.SetDefaults()
	r.Rules = usual.Remove
	require.NoError(t, r.findNamespaces(t.Context()))
	for _, part := range []part{r.findApplications, r.mark} {
		require.NoError(t, part(t.Context()))
	}
	return r
}

func TestANamespaceThatWasThereBeforeStays(t *testing.T) {
	api, client := shared(t)
	api.Set(t, "/api/v1/namespaces/team", "metadata: {"+used+"}")
	api.Set(t, "/api/v1/namespaces/team/configmaps/ours", "metadata: {name: ours, namespace: team, "+byUs+"}")
	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.Contains(t, out.Objects, "ConfigMap team/ours")
	require.NotContains(t, out.Namespaces, "team")
	require.Nil(t, api.Get("/api/v1/namespaces/team/configmaps/ours"))
	require.NotContains(t, api.Get("/api/v1/namespaces/team")["metadata"].(map[string]any)["labels"], kube.DeploymentLabel)
	require.NotNil(t, api.Get("/api/v1/namespaces/team/configmaps/theirs"))
	empty(t, client)
}

// record keeps in the cluster how the deployment is removed.
func record(t *testing.T, client *kube.Client, change func(*Removal)) {
	t.Helper()
	var rec Removal
	rec.Remove.SetDefaults()
	rec.Argo = "shop"
	rec.Components = []Component{{Name: "cache"}}
	change(&rec)
	require.NoError(t, rec.Write(t.Context(), client, "demo"))
}

func TestClaimsThatAReleaseKeeps(t *testing.T) {
	api, client := shared(t)
	record(t, client, func(rec *Removal) { rec.Remove.Claims = "keep" })
	for range 2 { // the second time, nothing says any more that the release keeps them
		out, err := removed(t.Context(), client, contract.RemoveInput{})
		require.NoError(t, err)
		require.ElementsMatch(t, []string{
			"Namespace shop", "PersistentVolumeClaim shop/rows", "Secret shop/password", "PersistentVolumeClaim kube-system/data-cache-0",
		}, out.Kept)
		require.Nil(t, api.Get("/api/v1/namespaces/slipway-system"))
		require.Nil(t, api.Get("/api/v1/namespaces/shop/configmaps/by-hand"))
		require.NotNil(t, api.Get("/api/v1/namespaces/shop/secrets/password"), "without it, the data may be worth nothing")
		require.NotNil(t, api.Get("/api/v1/persistentvolumes/rows"))
		require.NotNil(t, api.Get("/api/v1/persistentvolumes/cache"))
		require.Nil(t, api.Get("/api/v1/persistentvolumes/former"), "it has no claim")
		untouched(t, api)
		empty(t, client)
	}
	api.Set(t, "/api/v1/namespaces/slipway-system", "metadata: {name: slipway-system, "+byUs+"}") // installed again
	record(t, client, func(*Removal) {})
	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.Empty(t, out.Kept)
	require.Nil(t, api.Get("/api/v1/namespaces/shop"))
	untouched(t, api)
	empty(t, client)
}

// TestClaimsOfAReleaseThatNobodyKnows: it may have said that they stay.
func TestClaimsOfAReleaseThatNobodyKnows(t *testing.T) {
	api, client := shared(t)
	api.Delete("/api/v1/namespaces/slipway-system/secrets/slipway-removal")
	api.Set(t, "/api/v1/namespaces/slipway-checks-demo", "metadata: {name: slipway-checks-demo, "+byUs+"}")
	api.Set(t, "/api/v1/namespaces/slipway-checks-demo/persistentvolumeclaims/data", "metadata: {name: data, namespace: slipway-checks-demo}")
	before := api.Writes()
	_, err := removed(t.Context(), client, contract.RemoveInput{})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeUnrecorded})
	require.ErrorContains(t, err, "there are the claims shop/rows; nothing was removed")
	require.Equal(t, before, api.Writes())

	api.Delete("/api/v1/namespaces/shop/persistentvolumeclaims/rows") // as of an install that was killed early
	_, err = removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	untouched(t, api)
	empty(t, client)
}

func TestCRDsStayWhereOthersUseThemOrTheReleaseSaysSo(t *testing.T) {
	for policy, want := range map[string]struct{ widgets, gadgets, theirs bool }{
		"unused": {widgets: true, theirs: true},
		"keep":   {widgets: true, gadgets: true, theirs: true},
		"delete": {},
	} {
		t.Run(policy, func(t *testing.T) {
			api, client := shared(t)
			api.Set(t, crds+"widgets.example.com", definition("widget"))
			record(t, client, func(rec *Removal) { rec.Remove.CRDs = policy })
			for range 2 {
				out, err := removed(t.Context(), client, contract.RemoveInput{})
				require.NoError(t, err)
				require.Equal(t, want.widgets, api.Get(crds+"widgets.example.com") != nil, out.Kept)
				require.Equal(t, want.gadgets, api.Get(crds+"gadgets.example.com") != nil, out.Kept)
				require.Equal(t, want.theirs, api.Get("/apis/example.com/v1/namespaces/team/widgets/theirs") != nil)
				empty(t, client)
			}
		})
	}
}

// TestComponentsGoInTheOrderOfTheRelease, each when the one before it is gone, and what
// intercepts requests first.
func TestComponentsGoInTheOrderOfTheRelease(t *testing.T) {
	api, client := shared(t)
	api.Define("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", false)
	for name, text := range map[string]string{
		"manager": `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager, namespace: shop, ` + used + `}, spec: {template: {spec: {containers: [{name: m, image: i, command: [m]}]}}}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: manager, ` + used + `}}
`,
		"database": "{apiVersion: v1, kind: ConfigMap, metadata: {name: database, namespace: shop, " + used + "}}",
	} {
		objs, err := kube.Decode([]byte(strings.ReplaceAll(text, written, "")))
		require.NoError(t, err)
		_, _, err = client.ApplySet(t.Context(), kube.Set{Name: name + "-objects", Deployment: "demo"}, objs, kube.ApplyOptions{})
		require.NoError(t, err)
	}
	record(t, client, func(rec *Removal) {
		rec.Components = []Component{{Name: "manager"}, {Name: "never-installed"}, {Name: "database"}}
	})
	before := len(api.Writes())
	out, err := removed(t.Context(), client, contract.RemoveInput{})
	require.NoError(t, err)
	require.Equal(t, []string{"manager", "database"}, out.Components)
	var deleted []string
	for _, w := range api.Writes()[before:] {
		if len(w) > 7 && w[:7] == "DELETE " {
			deleted = append(deleted, w[7:])
		}
	}
	require.Equal(t, []string{
		"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/manager",
		"/apis/apps/v1/namespaces/shop/deployments/manager",
		"/api/v1/namespaces/slipway-system/secrets/manager-objects",
		"/api/v1/namespaces/shop/configmaps/database",
	}, deleted[:4])
	require.Equal(t, "/api/v1/namespaces/slipway-system", deleted[len(deleted)-1], "with it goes how the rest is removed")
	untouched(t, api)
	empty(t, client)
}

func TestFinalizersThatNobodyRemoves(t *testing.T) {
	const held = "/apis/rbac.authorization.k8s.io/v1/clusterroles/web"
	stuck := func(t *testing.T, then string) (*kubetest.API, *kube.Client) {
		t.Helper()
		api, client := shared(t)
		api.Set(t, held, "metadata: {finalizers: [example.com/nobody]}")
		record(t, client, func(rec *Removal) { rec.Remove.Finalizers.After, rec.Remove.Finalizers.Then = 1e9, then })
		return api, client
	}
	t.Run("are removed", func(t *testing.T) {
		api, client := stuck(t, "strip")
		out, err := removed(t.Context(), client, contract.RemoveInput{})
		require.NoError(t, err)
		require.Equal(t, []string{"ClusterRole web: example.com/nobody"}, out.Stripped)
		untouched(t, api)
		empty(t, client)
	})
	t.Run("or reported", func(t *testing.T) {
		api, client := stuck(t, "report")
		_, err := removed(t.Context(), client, contract.RemoveInput{})
		require.ErrorIs(t, err, &fault.Fault{Code: CodeStuck})
		require.ErrorContains(t, err, "ClusterRole web: example.com/nobody")
		require.NotNil(t, api.Get(held))
		api.Set(t, held, "metadata: {finalizers: null}")
		api.Delete(held)
		_, err = removed(t.Context(), client, contract.RemoveInput{})
		require.NoError(t, err)
		untouched(t, api)
		empty(t, client)
	})
}
