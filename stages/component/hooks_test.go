package component

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	helmkube "helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestAnUpgradeDeletesNoData: the component's list says what the chart no longer has, and Helm
// deletes nothing.
func TestAnUpgradeDeletesNoData(t *testing.T) {
	s := newSite(t, valuesRelease, valuesFiles())
	rel, err := s.installer(t, valuesInput()).open(t.Context(), nil, nil)
	require.NoError(t, err)
	build := func(objects ...string) helmkube.ResourceList {
		t.Helper()
		var text bytes.Buffer
		for _, o := range objects {
			kind, name, _ := strings.Cut(o, " ")
			fmt.Fprintf(&text, "---\n{apiVersion: v1, kind: %s, metadata: {name: %s, namespace: shop, labels: {%s: demo}}}\n", kind, name, kube.DeploymentLabel)
		}
		out, err := rel.config.KubeClient.Build(&text, false)
		require.NoError(t, err)
		return out
	}
	before, now := build("ConfigMap web", "ConfigMap old", "ConfigMap theirs", "PersistentVolumeClaim rows"), build("ConfigMap web")
	_, err = rel.config.KubeClient.Create(before)
	require.NoError(t, err)
	s.api.Set(t, "/api/v1/namespaces/shop/configmaps/theirs", "metadata: {labels: {"+kube.DeploymentLabel+": other}}")
	_, err = rel.config.KubeClient.Update(before, now, false)
	require.NoError(t, err)
	for path, stays := range map[string]bool{"configmaps/web": true, "configmaps/old": false, "configmaps/theirs": true, "persistentvolumeclaims/rows": true} {
		require.Equal(t, stays, s.api.Get("/api/v1/namespaces/shop/"+path) != nil, path)
	}
}

// TestAnObjectWithoutAName is rejected before Helm sees it; an upgrade with one deletes nothing
// either.
func TestAnObjectWithoutAName(t *testing.T) {
	s := newSite(t, valuesRelease, valuesFiles())
	i := s.installer(t, valuesInput())
	rel, err := i.open(t.Context(), nil, nil)
	require.NoError(t, err)
	const unnamed = "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: web-, namespace: shop}}"
	_, err = i.complete(t.Context(), bytes.NewBufferString(unnamed))
	require.ErrorContains(t, err, "metadata.name is missing")

	const rows = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: rows, namespace: shop, labels: {" + kube.DeploymentLabel + ": demo}}}"
	before, err := rel.config.KubeClient.Build(bytes.NewBufferString(rows), false)
	require.NoError(t, err)
	_, err = rel.config.KubeClient.Create(before)
	require.NoError(t, err)
	now, err := rel.config.KubeClient.Build(bytes.NewBufferString(unnamed), false)
	require.NoError(t, err)
	_, err = rel.config.KubeClient.Update(before, now, false)
	require.Error(t, err)
	require.NotNil(t, s.api.Get("/api/v1/namespaces/shop/persistentvolumeclaims/rows"))
}

// TestTheImagesOfHooks are those that the cluster's nodes can pull, as of other objects.
func TestTheImagesOfHooks(t *testing.T) {
	s := newSite(t, valuesRelease, valuesFiles())
	s.api.Set(t, "/api/v1/namespaces/shop/services/git", "spec: {clusterIP: 10.96.0.7}")
	i := s.installer(t, valuesInput())
	rel, err := i.open(t.Context(), nil, nil)
	require.NoError(t, err)
	resources, err := rel.config.KubeClient.Build(bytes.NewBufferString(`
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: shop, annotations: {helm.sh/hook: pre-install}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "docker.io/library/nginx:1"}]}}}
`), false)
	require.NoError(t, err)
	_, err = rel.config.KubeClient.Create(resources)
	require.NoError(t, err)
	made := s.api.Get("/apis/batch/v1/namespaces/shop/jobs/migrate")
	containers, _, err := unstructured.NestedSlice(made, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	require.Contains(t, containers[0].(map[string]any)["image"], "slipway.local/nginx@sha256:00")
}

// TestAHookWhosePodDoesNotStart is told with its reason while it is waited for.
func TestAHookWhosePodDoesNotStart(t *testing.T) {
	s := newSite(t, valuesRelease, valuesFiles())
	const job = "/apis/batch/v1/namespaces/shop/jobs/migrate"
	s.api.Set(t, "/api/v1/namespaces/shop/pods/migrate-1", "{metadata: {name: migrate-1, namespace: shop, labels: {job-name: migrate}}, spec: {containers: [{name: a, image: 'example.com/none:1'}]}, "+
		"status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image \"example.com/none:1\"'}}}]}}")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	rel, err := s.installer(t, valuesInput()).open(ctx, nil, nil)
	require.NoError(t, err)
	resources, err := rel.config.KubeClient.Build(bytes.NewBufferString(`
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: shop, annotations: {helm.sh/hook: pre-install}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "docker.io/library/nginx:1"}]}}}
`), false)
	require.NoError(t, err)
	s.api.Set(t, job, "{metadata: {name: migrate, namespace: shop}, status: {active: 1}}")
	err = rel.config.KubeClient.WatchUntilReady(resources, time.Hour)
	require.ErrorContains(t, err, "image cannot be pulled")
	require.ErrorContains(t, err, "pod migrate-1")

	s.api.Set(t, job, "{metadata: {name: migrate, namespace: shop}, status: {succeeded: 1, conditions: [{type: Complete, status: 'True'}]}}")
	rel, err = s.installer(t, valuesInput()).open(t.Context(), nil, nil)
	require.NoError(t, err)
	require.NoError(t, rel.config.KubeClient.WatchUntilReady(resources, time.Hour))
}
