package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// adopted is a component that Slipway installs first and Argo CD owns afterwards.
const adopted = `  - name: keeper
    kind: adopted
    path: gitops/adopted/keeper
    namespace: platform
    images: [busybox]
    values: {image: "{images.busybox}", says: first, extra: leaves}
    ready: [{rollout: apps/v1/Deployment platform/keeper}]
`

// requireAdopted: after an install of the release in dir, Argo CD has what Slipway had made,
// and has changed nothing in it. What is new in the next run, Argo CD brings. Afterwards
// the component is gone.
func requireAdopted(t *testing.T, k *kept, dir string) {
	t.Helper()
	deployment := func(path string) string {
		t.Helper()
		return k.kubectl(t, "get", "deployment", "-n", "platform", "keeper", "-o", "jsonpath="+path)
	}
	const made = "{.metadata.uid} {.metadata.creationTimestamp}"
	const rollouts = `{.metadata.annotations.deployment\.kubernetes\.io/revision}` // the generation counts annotations, too: Argo CD's
	const env = `{range .spec.template.spec.containers[0].env[*]}{.name}={.value} {end}`
	owned := func() {
		t.Helper()
		require.Equal(t, "Synced Healthy", k.kubectl(t, "get", "application", "-n", "argocd", "keeper", "-o", "jsonpath={.status.sync.status} {.status.health.status}"))
		require.Empty(t, k.kubectl(t, "get", "secret", "-n", "slipway-system", "keeper-objects", "--ignore-not-found", "-o", "name"), "Slipway has no list of it any more")
	}

	k.record(t).requireOrder(t, "preorchestrator/keeper", "orchestrator/keeper")
	owned()
	require.NotEmpty(t, deployment(`{.metadata.labels.slipway\.sh/deployment}`), "Slipway made it")
	require.LessOrEqual(t, deployment("{.metadata.creationTimestamp}"), k.kubectl(t, "get", "application", "-n", "argocd", "keeper", "-o", "jsonpath={.metadata.creationTimestamp}"))
	require.Equal(t, "1", deployment(rollouts), "nobody has changed its pods since")
	require.Equal(t, "SAYS=first EXTRA=leaves ", deployment(env))
	before := deployment(made)
	role := k.kubectl(t, "get", "clusterrole", "keeper", "-o", "jsonpath="+made)

	changed := k.with(write(t, configured+"platform: {components: {keeper: {values: {says: second, extra: ''}}}}\n"))
	r := changed.must(t, "install", "--platform", dir)
	require.Regexp(t, `(?m)^\s*orchestrator/keeper\s+succeeded\s`, r.out)
	owned()
	require.Equal(t, before, deployment(made), "the same object")
	require.Equal(t, role, k.kubectl(t, "get", "clusterrole", "keeper", "-o", "jsonpath="+made))
	require.Equal(t, "SAYS=second ", deployment(env), "also what the chart has no more is gone")
	require.Equal(t, "2", deployment(rollouts))

	again := changed.must(t, "install", "--platform", dir)
	require.Regexp(t, `(?m)^\s*preorchestrator/keeper\s+reused\s`, again.out)
	require.Regexp(t, `(?m)^\s*orchestrator/keeper\s+reused\s`, again.out)
	require.Equal(t, "2", deployment(rollouts))

	patched("Application argocd/keeper", `{"spec":{"syncPolicy":{"automated":null}}}`).do(t, k.kubectl)
	byHand{"Deployment platform/keeper", "set env", []string{"SAYS=by-hand"}}.do(t, k.kubectl)
	byHand{"ClusterRole " + noNamespace + "/keeper", "delete", nil}.do(t, k.kubectl)
	changed.must(t, "install", "--platform", dir)
	owned()
	require.Equal(t, "SAYS=second ", deployment(env), "what was changed by hand is undone")
	require.Equal(t, before, deployment(made), "the same object")
	k.kubectl(t, "get", "clusterrole", "keeper")

	k.kubectl(t, "delete", "application", "-n", "argocd", "keeper")
	require.Empty(t, strings.TrimSpace(k.kubectl(t, "get", "deployment,service", "-n", "platform", "keeper", "--ignore-not-found", "-o", "name")))
	require.Empty(t, strings.TrimSpace(k.kubectl(t, "get", "clusterrole", "keeper", "--ignore-not-found", "-o", "name")))
}
