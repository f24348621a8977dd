package kube_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

func onFake(t *testing.T) (*kubetest.API, *kube.Client) {
	t.Helper()
	api := kubetest.Serve(t)
	c, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	return api, c
}

func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	out, err := kube.Decode([]byte(text))
	require.NoError(t, err)
	return out
}

const (
	web    = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: ns, labels: {" + kube.DeploymentLabel + ": d}}, spec: {template: {spec: {containers: [{name: web, image: i, command: [a]}]}}}}\n"
	old    = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: ns, labels: {" + kube.DeploymentLabel + ": d}}, data: {k: v}}\n"
	taken  = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: taken, namespace: ns, labels: {" + kube.DeploymentLabel + ": d}}}\n"
	atWeb  = "/apis/apps/v1/namespaces/ns/deployments/web"
	atOld  = "/api/v1/namespaces/ns/configmaps/old"
	atTook = "/api/v1/namespaces/ns/configmaps/taken"
)

// TestACRDThatAKilledServerForgotIsNudged: the server establishes it when it sees it change, and
// the change does not stay.
func TestACRDThatAKilledServerForgotIsNudged(t *testing.T) {
	const at = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/apps.example.com"
	api, c := onFake(t)
	nudged := false
	api.Controller = func(_ string, o map[string]any) {
		conditions := []any{map[string]any{"type": "NamesAccepted", "status": "True"}}
		annotations, _, _ := unstructured.NestedMap(o, "metadata", "annotations")
		nudged = nudged || annotations["slipway.sh/nudge"] != nil
		if nudged {
			conditions = append(conditions, map[string]any{"type": "Established", "status": "True"})
		}
		o["status"] = map[string]any{"conditions": conditions}
	}
	crd := objects(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: apps.example.com}}")
	_, err := c.Apply(t.Context(), crd, kube.ApplyOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"PATCH " + at, "PATCH " + at, "PATCH " + at}, api.Writes())
	require.Empty(t, api.Get(at)["metadata"].(map[string]any)["annotations"])
}

func TestASetLosesWhatANewerVersionDropped(t *testing.T) {
	api, c := onFake(t)
	set := kube.Set{Name: "set", Deployment: "d"}
	api.Set(t, "/api/v1/namespaces/ns/configmaps/theirs", "metadata: {name: theirs, labels: {"+kube.DeploymentLabel+": d}}")
	_, deleted, err := c.ApplySet(t.Context(), set, objects(t, web+old+taken), kube.ApplyOptions{})
	require.NoError(t, err)
	require.Empty(t, deleted)
	api.Set(t, atTook, "metadata: {labels: {"+kube.DeploymentLabel+": somebody else's}}")

	verified := func(text string) error {
		p := plan.Verify("web")
		_, _, err := planned(t, c, p).ApplySet(t.Context(), set, objects(t, text), kube.ApplyOptions{})
		require.NoError(t, err)
		return p.Err()
	}
	require.ErrorIs(t, verified(web+old+taken), plan.ErrChange, "the label")
	require.ErrorIs(t, verified(web), plan.ErrChange)
	require.NotNil(t, api.Get(atOld))

	_, deleted, err = c.ApplySet(t.Context(), set, objects(t, web), kube.ApplyOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"ConfigMap ns/old"}, deleted)
	require.Nil(t, api.Get(atOld))
	require.NotNil(t, api.Get(atTook), "it is not ours any more")
	require.NotNil(t, api.Get("/api/v1/namespaces/ns/configmaps/theirs"), "it never was in the set")

	_, deleted, err = c.ApplySet(t.Context(), set, objects(t, web), kube.ApplyOptions{})
	require.NoError(t, err, "and then nothing is left to do")
	require.Empty(t, deleted)
}

// TestASetKeepsWhatDataGoesWith, also when a newer version has it no more.
func TestASetKeepsWhatDataGoesWith(t *testing.T) {
	api, c := onFake(t)
	set := kube.Set{Name: "set", Deployment: "d"}
	const label = "labels: {" + kube.DeploymentLabel + ": d}}"
	_, _, err := c.ApplySet(t.Context(), set, objects(t, web+"---\n{apiVersion: v1, kind: PersistentVolume, metadata: {name: rows, "+label+"}\n"), kube.ApplyOptions{})
	require.NoError(t, err)
	_, deleted, err := c.ApplySet(t.Context(), set, objects(t, web), kube.ApplyOptions{})
	require.NoError(t, err)
	require.Empty(t, deleted)
	require.NotNil(t, api.Get("/api/v1/persistentvolumes/rows"))
}

// TestASetNotesWhatHasNoNamespaceWithoutOne, and knows it again where it was noted with the
// component's before its kind was known.
func TestASetNotesWhatHasNoNamespaceWithoutOne(t *testing.T) {
	const (
		label  = "labels: {" + kube.DeploymentLabel + ": d}"
		atRole = "/apis/rbac.authorization.k8s.io/v1/clusterroles/reader"

		atDefinition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/wholes.new.example.com"

		role  = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader, " + label + "}}\n"
		page  = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: page, " + label + "}}\n"
		whole = `---
{apiVersion: new.example.com/v1, kind: Whole, metadata: {name: all, ` + label + `}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: wholes.new.example.com, ` + label + `}
spec: {group: new.example.com, scope: Cluster, names: {kind: Whole}}
`
	)
	api, c := onFake(t)
	api.Define("rbac.authorization.k8s.io/v1", "ClusterRole", false)
	go func() { // the server learns of the kind, and says so
		for api.Get(atDefinition) == nil && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		api.Define("new.example.com/v1", "Whole", false)
		api.Set(t, atDefinition, "status: {conditions: [{type: Established, status: 'True'}]}")
	}()
	opts := kube.ApplyOptions{Namespace: "shop"}
	set := kube.Set{Name: "set", Deployment: "d"}
	require.NoError(t, c.KeepMembers(t.Context(), "d", "set", []kube.Member{
		{Kind: schema.GroupVersionKind{Group: "new.example.com", Version: "v1", Kind: "Whole"}, Namespace: "shop", Name: "all"},
		{Kind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, Namespace: "shop", Name: "reader"},
		{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "shop", Name: "page"},
	}))
	_, deleted, err := c.ApplySet(t.Context(), set, objects(t, role+page+whole), opts)
	require.NoError(t, err)
	require.Empty(t, deleted)
	for _, path := range []string{atRole, "/api/v1/namespaces/shop/configmaps/page", "/apis/new.example.com/v1/wholes/all"} {
		require.NotNil(t, api.Get(path), path)
	}
	note, err := c.Notes(t.Context(), "", "set")
	require.NoError(t, err)
	require.JSONEq(t, `{"entries": [
		{"id": "_all_new.example.com_Whole", "v": "v1"}, {"id": "_reader_rbac.authorization.k8s.io_ClusterRole", "v": "v1"},
		{"id": "_wholes.new.example.com_apiextensions.k8s.io_CustomResourceDefinition", "v": "v1"}, {"id": "shop_page__ConfigMap", "v": "v1"}
	]}`, note["inventory"])

	opts.Namespace = "market"
	_, deleted, err = c.ApplySet(t.Context(), set, objects(t, role+page+whole), opts)
	require.NoError(t, err)
	require.Equal(t, []string{"ConfigMap shop/page"}, deleted, "with another namespace, what has one is another object")
	require.NotNil(t, api.Get(atRole))
}

// TestAList is one that other tools read, and that Slipway reads as it wrote it.
func TestAList(t *testing.T) {
	_, c := onFake(t)
	members := []kube.Member{
		{Kind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, Name: "system:shop_reader"},
		{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Namespace: "shop", Name: "login"},
	}
	require.NoError(t, c.KeepMembers(t.Context(), "d", "set", members))
	note, err := c.Notes(t.Context(), "", "set")
	require.NoError(t, err)
	require.JSONEq(t, `{"entries": [{"id": "_system__shop_reader_rbac.authorization.k8s.io_ClusterRole", "v": "v1"}, {"id": "shop_login__Secret", "v": "v1"}]}`, note["inventory"])
	read, err := c.Members(t.Context(), "set")
	require.NoError(t, err)
	require.Equal(t, members, read)
	require.NoError(t, c.KeepNotes(t.Context(), "d", "set", map[string]string{"inventory": `{"entries": [{"id": "shop_login", "v": "v1"}]}`}))
	_, err = c.Members(t.Context(), "set")
	require.ErrorContains(t, err, `read the list of set: "shop_login" is no object`)
}
