package removal_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/removal"
)

const (
	byUs     = "labels: {" + kube.ManagedBy + ": " + kube.FieldManager + ", " + kube.DeploymentLabel + ": demo}, managedFields: [{manager: " + kube.FieldManager + "}]"
	atList   = "/api/v1/namespaces/slipway-system/configmaps/slipway-prerequisites"
	prepared = `
namespaces: [{name: shop}, {name: tools}]
secrets:
  - {name: database, namespace: shop, keys: [{key: password, generate: password}]}
  - {name: tools, namespace: tools, keys: [{key: password, generate: password}]}
configMaps: [{name: settings, namespace: shop, data: {a: b}}]
certificates: [{secret: shop/cert, hosts: ["shop.{domain}"]}]
`
)

// preparing is a release with these sections.
func preparing(t *testing.T, sections string) *platform.Release {
	t.Helper()
	r, err := platform.Load(fstest.MapFS{
		"platform.yaml": {Data: []byte("apiVersion: slipway/v2\nname: shop\nversion: 1.0.0\ncomponents: [{name: web, kind: manifests, path: a.yaml, namespace: shop}]\n" + sections)},
		"a.yaml":        {Data: []byte("{}")},
	})
	require.NoError(t, err)
	return r
}

// path is where an object of the core API is: "Kind namespace/name".
func path(object string) string {
	kind, name, _ := strings.Cut(object, " ")
	if namespace, name, found := strings.Cut(name, "/"); found {
		return "/api/v1/namespaces/" + namespace + "/" + strings.ToLower(kind) + "s/" + name
	}
	return "/api/v1/namespaces/" + name
}

// made is a cluster that has what is prepared for the release above.
func made(t *testing.T) (*kubetest.API, *removal.Remover) {
	t.Helper()
	api, r := on(t)
	for _, object := range []string{
		"Namespace shop", "Namespace tools", "Secret shop/database", "Secret tools/tools", "ConfigMap shop/settings", "Secret shop/cert",
		"ConfigMap shop/slipway-ca", "ConfigMap tools/slipway-ca",
	} {
		put(t, api, object, byUs)
	}
	require.NoError(t, removal.RecordPrerequisites(t.Context(), r.Client, "demo", preparing(t, prepared)))
	return api, r
}

// put makes an object with more in its metadata.
func put(t *testing.T, api *kubetest.API, object, more string) {
	t.Helper()
	_, name, _ := strings.Cut(object, " ")
	meta := "name: " + name
	if namespace, name, found := strings.Cut(name, "/"); found {
		meta = "namespace: " + namespace + ", name: " + name
	}
	if more != "" {
		meta += ", " + more
	}
	api.Set(t, path(object), "metadata: {uid: "+strings.NewReplacer(" ", "-", "/", "-").Replace(object)+", "+meta+"}")
}

// web applies a ConfigMap for the component web.
func web(t *testing.T, r *removal.Remover, namespace, name string) {
	t.Helper()
	objs, err := kube.Decode([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: " + namespace + ", " + label + "}}"))
	require.NoError(t, err)
	_, _, err = r.Client.ApplySet(t.Context(), kube.Set{Name: "web-objects", Deployment: "demo"}, objs, kube.ApplyOptions{Force: true})
	require.NoError(t, err)
}

// TestWhatANewerReleaseDoesNotPrepare goes, and nothing that nobody has noted.
func TestWhatANewerReleaseDoesNotPrepare(t *testing.T) {
	api, r := made(t)
	put(t, api, "Secret shop/unnoted", byUs)
	put(t, api, "ConfigMap tools/kube-root-ca.crt", "")
	same := preparing(t, prepared)
	own, p := r.Client, verified(t, r)
	deleted, kept, err := r.PrunePrerequisites(t.Context(), same, nil)
	require.NoError(t, err)
	require.NoError(t, p.Err(), "nothing is dropped")
	r.Client = own
	require.Empty(t, append(deleted, kept...))

	newer := preparing(t, "namespaces: [{name: shop}]\n")
	require.NoError(t, removal.RecordPrerequisites(t.Context(), r.Client, "demo", newer))
	p = verified(t, r)
	_, _, err = r.PrunePrerequisites(t.Context(), newer, nil)
	require.NoError(t, err)
	require.ErrorIs(t, p.Err(), plan.ErrChange)
	r.Client = own
	deleted, kept, err = r.PrunePrerequisites(t.Context(), newer, nil)
	require.NoError(t, err)
	require.Empty(t, kept)
	gone := []string{
		"Secret shop/database", "Secret tools/tools", "ConfigMap shop/settings", "Secret shop/cert", "ConfigMap shop/slipway-ca", "ConfigMap tools/slipway-ca",
		"Namespace tools",
	}
	require.ElementsMatch(t, gone, deleted)
	require.Equal(t, "Namespace tools", deleted[len(deleted)-1], "what is in it goes first")
	for _, object := range gone {
		require.Nil(t, api.Get(path(object)), object)
	}
	for _, object := range []string{"Namespace shop", "Secret shop/unnoted"} {
		require.NotNil(t, api.Get(path(object)), object)
	}
	require.Equal(t, map[string]any{"objects": "v1 Namespace shop\n"}, api.Get(atList)["data"])
	p = verified(t, r)
	deleted, kept, err = r.PrunePrerequisites(t.Context(), newer, nil)
	require.NoError(t, err)
	require.NoError(t, p.Err(), "there is nothing to do")
	require.Empty(t, append(deleted, kept...))
}

// TestADeploymentWithoutAList of what was prepared loses nothing.
func TestADeploymentWithoutAList(t *testing.T) {
	api, r := made(t)
	api.Delete(atList)
	newer := preparing(t, "namespaces: [{name: shop}]\n")
	require.NoError(t, removal.RecordPrerequisites(t.Context(), r.Client, "demo", newer))
	deleted, kept, err := r.PrunePrerequisites(t.Context(), newer, nil)
	require.NoError(t, err)
	require.Empty(t, append(deleted, kept...))
	require.NotNil(t, api.Get(path("Secret shop/database")))
}

// TestWhatIsNotToBeLostStays although the release has it no more.
func TestWhatIsNotToBeLostStays(t *testing.T) {
	const pod = "/api/v1/namespaces/shop/pods/web-0"
	for what, c := range map[string]struct {
		change  func(t *testing.T, api *kubetest.API, r *removal.Remover)
		leftOut []string
		stays   map[string]string // to why
		forever []string          // what is somebody else's by now
	}{
		"what a pod reads": {
			change: func(t *testing.T, api *kubetest.API, _ *removal.Remover) {
				api.Set(t, pod, "{metadata: {name: web-0, namespace: shop}, spec: {volumes: [{name: a, secret: {secretName: database}}]}}")
				api.Set(t, "/apis/apps/v1/namespaces/shop/deployments/old", "{metadata: {name: old, namespace: shop}, spec: {template: {spec: {containers: [{envFrom: [{configMapRef: {name: settings}}]}]}}}}")
			},
			stays: map[string]string{"Secret shop/database": "Pod web-0 reads it", "ConfigMap shop/settings": "Deployment old reads it"},
		},
		"what images are pulled with": {
			change: func(t *testing.T, api *kubetest.API, _ *removal.Remover) {
				api.Set(t, pod, "{metadata: {name: web-0, namespace: shop}, spec: {imagePullSecrets: [{name: database}]}}")
			},
			stays: map[string]string{"Secret shop/database": "Pod web-0 reads it"},
		},
		"not Secrets beside a claim of a pod's own": {
			change: func(t *testing.T, api *kubetest.API, _ *removal.Remover) {
				put(t, api, "PersistentVolumeClaim shop/rows", "ownerReferences: [{kind: Pod, name: web-0}]")
			},
		},
		"not what only a pod reads that has ended": {
			change: func(t *testing.T, api *kubetest.API, _ *removal.Remover) {
				api.Set(t, pod, "{metadata: {name: web-0, namespace: shop}, spec: {volumes: [{name: a, secret: {secretName: database}}]}, status: {phase: Succeeded}}")
			},
		},
		"Secrets beside a claim that no pod has": {
			change: func(t *testing.T, api *kubetest.API, _ *removal.Remover) {
				put(t, api, "PersistentVolumeClaim shop/rows", "")
			},
			stays: map[string]string{
				"Secret shop/database": "what is in the claim shop/rows, which no pod has, may be worth nothing without it",
				"Secret shop/cert":     "what is in the claim shop/rows, which no pod has, may be worth nothing without it",
			},
		},
		"not Secrets beside a claim that is in use": {
			change: func(t *testing.T, api *kubetest.API, _ *removal.Remover) {
				put(t, api, "PersistentVolumeClaim shop/rows", "")
				api.Set(t, pod, "{metadata: {name: web-0, namespace: shop}, spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: rows}}]}}")
			},
		},
		"a namespace with a claim": {
			change: func(t *testing.T, api *kubetest.API, _ *removal.Remover) {
				put(t, api, "PersistentVolumeClaim tools/rows", byUs)
				put(t, api, "ConfigMap tools/a", "")
			},
			stays: map[string]string{
				"Secret tools/tools": "what is in the claim tools/rows, which no pod has, may be worth nothing without it",
				"Namespace tools":    "it has PersistentVolumeClaim tools/rows and 1 more",
			},
		},
		"a namespace with something of somebody else's": {
			change: func(t *testing.T, api *kubetest.API, _ *removal.Remover) {
				put(t, api, "ConfigMap tools/theirs", "")
				put(t, api, "ConfigMap tools/made", "ownerReferences: [{uid: ConfigMap-tools-theirs, kind: ConfigMap, name: theirs}]")
			},
			stays: map[string]string{"Namespace tools": "it has ConfigMap tools/theirs"},
		},
		"what a component has now": {
			change:  func(t *testing.T, _ *kubetest.API, r *removal.Remover) { web(t, r, "shop", "settings") },
			forever: []string{"ConfigMap shop/settings"},
		},
		"a namespace in which a component has something": {
			change: func(t *testing.T, _ *kubetest.API, r *removal.Remover) { web(t, r, "tools", "a") },
			stays:  map[string]string{"Namespace tools": "it has ConfigMap tools/a"},
		},
		"what an Application has brought": {
			change: func(t *testing.T, api *kubetest.API, _ *removal.Remover) {
				naming(t, api)
				put(t, api, "ConfigMap tools/brought", byUs+", annotations: {argocd.argoproj.io/tracking-id: 'web:/ConfigMap:tools/brought'}")
				api.Set(t, path("ConfigMap shop/settings"), "metadata: {annotations: {argocd.argoproj.io/tracking-id: 'web:/ConfigMap:shop/settings'}}")
			},
			forever: []string{"ConfigMap shop/settings"},
			stays:   map[string]string{"Namespace tools": "it has ConfigMap tools/brought"},
		},
		"not what an Application only names": {
			change: func(t *testing.T, api *kubetest.API, _ *removal.Remover) { naming(t, api) },
		},
		"a namespace with an Application": {
			change: func(t *testing.T, api *kubetest.API, _ *removal.Remover) {
				api.Define("argoproj.io/v1alpha1", "Application", true)
				api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/tools/applications/root", "metadata: {name: root, namespace: tools, "+byUs+"}")
			},
			stays: map[string]string{"Namespace tools": "it has Application tools/root"},
		},
		"what is somebody else's": {
			change: func(t *testing.T, api *kubetest.API, _ *removal.Remover) {
				api.Set(t, path("Secret shop/database"), "metadata: {labels: {"+kube.DeploymentLabel+": other}}")
				api.Set(t, path("ConfigMap shop/settings"), "metadata: {managedFields: [{manager: velero}]}")
			},
			forever: []string{"Secret shop/database", "ConfigMap shop/settings"},
		},
		"what a component may need that the run has left out": {
			leftOut: []string{"web"},
			stays: map[string]string{
				"Secret shop/database": "this run has left out web", "Secret shop/cert": "this run has left out web", "ConfigMap shop/settings": "this run has left out web",
				"ConfigMap shop/slipway-ca": "this run has left out web", "ConfigMap tools/slipway-ca": "this run has left out web",
				"Secret tools/tools": "this run has left out web", "Namespace tools": "this run has left out web",
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			api, r := made(t)
			if c.change != nil {
				c.change(t, api, r)
			}
			newer := preparing(t, "namespaces: [{name: shop}]\n")
			deleted, kept, err := r.PrunePrerequisites(t.Context(), newer, c.leftOut)
			require.NoError(t, err)
			var want []string
			for object, why := range c.stays {
				want = append(want, object+": "+why)
			}
			require.ElementsMatch(t, want, kept)
			for _, object := range []string{"Secret shop/database", "Secret shop/cert", "ConfigMap shop/settings", "ConfigMap shop/slipway-ca", "Secret tools/tools", "Namespace tools"} {
				stays := c.stays[object] != "" || slices.Contains(c.forever, object)
				require.Equal(t, stays, api.Get(path(object)) != nil, object)
				require.Equal(t, !stays, slices.Contains(deleted, object), object)
			}
			list, _ := api.Get(atList)["data"].(map[string]any)["objects"].(string)
			for object := range c.stays {
				require.Contains(t, list, "v1 "+object+"\n", "the next install tries again")
			}
			for _, object := range c.forever {
				require.NotContains(t, list, "v1 "+object+"\n")
			}
			writes := api.Writes()
			p := verified(t, r)
			_, again, err := r.PrunePrerequisites(t.Context(), newer, c.leftOut)
			require.NoError(t, err)
			require.NoError(t, p.Err())
			require.ElementsMatch(t, want, again)
			require.Equal(t, writes, api.Writes())
		})
	}
}

// naming is an Application that names much.
func naming(t *testing.T, api *kubetest.API) {
	t.Helper()
	api.Define("argoproj.io/v1alpha1", "Application", true)
	api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/team/applications/web", "{metadata: {name: web, namespace: team}, status: {resources: ["+
		"{kind: ConfigMap, namespace: shop, name: settings}, {kind: Secret, namespace: shop, name: database}, {kind: Namespace, name: tools}, {kind: ConfigMap, namespace: tools, name: brought}]}}")
}

// TestANamespaceThatWasThereBefore loses the deployment's labels and stays.
func TestANamespaceThatWasThereBefore(t *testing.T) {
	api, r := made(t)
	api.Set(t, path("Namespace tools"), "metadata: {labels: {"+kube.ManagedBy+": null, team: a}}")
	deleted, kept, err := r.PrunePrerequisites(t.Context(), preparing(t, "namespaces: [{name: shop}]\n"), nil)
	require.NoError(t, err)
	require.Empty(t, kept)
	require.NotContains(t, deleted, "Namespace tools")
	require.Nil(t, api.Get(path("Secret tools/tools")))
	require.Equal(t, map[string]any{"team": "a"}, api.Get(path("Namespace tools"))["metadata"].(map[string]any)["labels"])
}
