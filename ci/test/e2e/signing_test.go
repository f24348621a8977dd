package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// signing are components beside those of the reference platform: an app with a gate after
// it and one that comes after nothing, an ApplicationSet, and a component that Argo CD takes
// over. Their files are in testdata/signing.
const signing = `  - {name: signing, kind: app, path: gitops/apps/signing, namespace: platform, wave: 30, images: [busybox]}
  - {name: signed, kind: gate, after: [signing], ready: [{http: {service: "platform/signing:80", path: /sign}}]}
  - {name: arrived, kind: gate, ready: [{synced: signing}]}
  - {name: addons, kind: appset, path: appsets, namespace: argocd}
`

const cluster = `
  cluster:
    labels: {addons: "true"}
    annotations: {example.com/repository: "{git.url}", example.com/revision: "{git.revision}"}
`

// signingRelease is the reference platform with those.
func signingRelease(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "platform")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(root(t), "examples/platform/1.0.0"))))
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/signing")))
	for file, change := range map[string][2]string{
		"platform.yaml":         {"\ngitops:\n  engine: argocd\n", signing + adopted + "\ngitops:\n  engine: argocd" + cluster},
		"argocd/workloads.yaml": {"name: argocd-applicationset-controller\nspec:\n  replicas: 0\n", "name: argocd-applicationset-controller\nspec:\n  replicas: 1\n"},
	} {
		text := read(t, dir, file)
		require.Equal(t, 1, strings.Count(text, change[0]), file)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(strings.Replace(text, change[0], change[1], 1)), 0o600))
	}
	return dir
}

// waitsForAnAnswer: an install waits for a gate after the sync as long as it is shut,
// although all pods are Ready and all apps Healthy, and says so in the cluster too. An
// ApplicationSet has made its Application by the Secret of the cluster, and Argo CD has
// taken over what Slipway installed for it.
func waitsForAnAnswer(t *testing.T, k *kept) {
	told := func(key string) string {
		t.Helper()
		return k.kubectl(t, "get", "configmap", "-n", "slipway-system", "slipway-status", "-o", "jsonpath={.data."+key+"}")
	}
	release := signingRelease(t)
	install := k.begin(t, "install", "--platform", release)
	install.sees(t, "orchestrator/signed: waiting for the gate http platform/signing:80/sign: answered 404")
	require.Equal(t, "true", k.kubectl(t, "get", "pods", "-n", "platform", "-l", "app=signing", "-o", "jsonpath={.items[*].status.containerStatuses[*].ready}"))
	require.Equal(t, "Synced Healthy", k.kubectl(t, "get", "application", "-n", "argocd", "signing", "-o", "jsonpath={.status.sync.status} {.status.health.status}"))
	require.Equal(t, "Waiting", told("state"))
	require.Contains(t, told("message"), "http platform/signing:80/sign")
	require.NotContains(t, install.printed(), "postorchestrator/access: running")

	k.kubectl(t, "exec", "-n", "platform", "deployment/signing", "--", "sh", "-c", "echo signed >/tmp/www/sign")
	require.Zero(t, install.wait(t), slipway.Tail(install.printed()))
	require.Regexp(t, `(?m)^\s*orchestrator/signed\s+succeeded\s`, install.printed())
	require.Regexp(t, `(?m)^\s*orchestrator/addons\s+succeeded\s`, install.printed())
	require.Equal(t, "Success", told("state"))
	requireArrived(t, k)

	require.Equal(t, "Synced Healthy ApplicationSet/addons", k.kubectl(t, "get", "application", "-n", "argocd", "addons-in-cluster", "-o",
		"jsonpath={.status.sync.status} {.status.health.status} {.metadata.ownerReferences[0].kind}/{.metadata.ownerReferences[0].name}"))
	require.Equal(t, "hello", k.kubectl(t, "get", "configmap", "-n", "platform", "hello", "-o", "jsonpath={.data.says}"))

	requireAdopted(t, k, release)
}

// requireArrived: the gate on the app was looked at before there was an Application, and
// opened once its pods were ready.
func requireArrived(t *testing.T, k *kept) {
	t.Helper()
	var app timed
	require.NoError(t, json.Unmarshal([]byte(k.kubectl(t, "get", "application", "-n", "argocd", "signing", "-o", "json")), &app))
	var pods struct{ Items []timed }
	require.NoError(t, json.Unmarshal([]byte(k.kubectl(t, "get", "pods", "-n", "platform", "-o", "json")), &pods))
	arrived := k.record(t).step(t, "orchestrator/arrived")
	require.Equal(t, "succeeded", arrived.Status)
	require.True(t, arrived.Started.Before(app.Metadata.CreationTimestamp), "it began at %s, the Application was made at %s", arrived.Started, app.Metadata.CreationTimestamp)
	since := ready(t, pods.Items, map[string]string{"app": "signing"})
	require.False(t, arrived.Finished.Before(since), "it was open at %s, the pod was ready at %s", arrived.Finished, since)
}
