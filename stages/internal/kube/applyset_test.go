package kube_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
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

func TestASetLosesWhatANewerVersionDropped(t *testing.T) {
	api, c := onFake(t)
	set := kube.Set{Name: "set", Deployment: "d"}
	api.Set(t, "/api/v1/namespaces/ns/configmaps/theirs", "metadata: {name: theirs, labels: {"+kube.DeploymentLabel+": d}}")
	_, deleted, err := c.ApplySet(t.Context(), set, objects(t, web+old+taken), kube.ApplyOptions{Force: true})
	require.NoError(t, err)
	require.Empty(t, deleted)
	api.Set(t, atTook, "metadata: {labels: {"+kube.DeploymentLabel+": somebody else's}}")

	dry := dryrun.Context(t.Context())
	_, _, err = c.ApplySet(dry, set, objects(t, web+old+taken), kube.ApplyOptions{Force: true})
	require.ErrorIs(t, err, dryrun.ErrWouldChange, "the label")
	_, _, err = c.ApplySet(dry, set, objects(t, web), kube.ApplyOptions{Force: true})
	require.ErrorIs(t, err, dryrun.ErrWouldChange)
	require.NotNil(t, api.Get(atOld))

	_, deleted, err = c.ApplySet(t.Context(), set, objects(t, web), kube.ApplyOptions{Force: true})
	require.NoError(t, err)
	require.Equal(t, []string{"ConfigMap ns/old"}, deleted)
	require.Nil(t, api.Get(atOld))
	require.NotNil(t, api.Get(atTook), "it is not ours any more")
	require.NotNil(t, api.Get("/api/v1/namespaces/ns/configmaps/theirs"), "it never was in the set")

	_, deleted, err = c.ApplySet(dry, set, objects(t, web), kube.ApplyOptions{Force: true})
	require.NoError(t, err, "and then nothing is left to do")
	require.Empty(t, deleted)
}

// TestASetKeepsWhatDataGoesWith, also when a newer version has it no more.
func TestASetKeepsWhatDataGoesWith(t *testing.T) {
	api, c := onFake(t)
	set := kube.Set{Name: "set", Deployment: "d"}
	const label = "labels: {" + kube.DeploymentLabel + ": d}}"
	_, _, err := c.ApplySet(t.Context(), set, objects(t, web+"---\n{apiVersion: v1, kind: PersistentVolume, metadata: {name: rows, "+label+"}\n"), kube.ApplyOptions{Force: true})
	require.NoError(t, err)
	_, deleted, err := c.ApplySet(t.Context(), set, objects(t, web), kube.ApplyOptions{Force: true})
	require.NoError(t, err)
	require.Empty(t, deleted)
	require.NotNil(t, api.Get("/api/v1/persistentvolumes/rows"))
}
