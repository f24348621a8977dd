package kube_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"

	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// TestWhatRunsForAMomentIsNotRolledOut: Kubernetes calls a container without a readiness probe
// ready as soon as it runs.
func TestWhatRunsForAMomentIsNotRolledOut(t *testing.T) {
	const pod = "metadata: {name: web-1, labels: {app: web}}\nstatus: {phase: Running, conditions: [{type: Ready, status: \"True\"}], containerStatuses: [{name: main, ready: true, state: "
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	for name, x := range map[string]struct{ probe, state, want string }{
		"it has just begun":   {"", "{running: {startedAt: \"" + ago(0) + "\"}}", "container main of pod web-1 has just begun to run, and has no readiness probe"},
		"it has ended":        {"", "{terminated: {exitCode: 1}}", "container main of pod web-1 does not run any more"},
		"it has run a while":  {"", "{running: {startedAt: \"" + ago(time.Minute) + "\"}}", ""},
		"a probe answers for": {", readinessProbe: {exec: {command: [a]}}", "{running: {startedAt: \"" + ago(0) + "\"}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			api := kubetest.Serve(t)
			api.Set(t, "/apis/apps/v1/namespaces/shop/deployments/web", "metadata: {name: web}\nspec: {replicas: 1, selector: {matchLabels: {app: web}}}\nstatus: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}\n")
			api.Set(t, "/api/v1/namespaces/shop/pods/web-1", pod+x.state+"}]}\nspec: {containers: [{name: main, image: a"+x.probe+"}]}\n")
			c, err := kube.New(&rest.Config{Host: api.URL})
			require.NoError(t, err)
			err = readiness.RolledOut(t.Context(), c, "Deployment", "shop", "web")
			if x.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, x.want)
			}
		})
	}
}

// TestRealRolloutOfWhatEndsAtOnce: it is no rollout, and the error says how it ended.
func TestRealRolloutOfWhatEndsAtOnce(t *testing.T) {
	c, ns, busybox := real(t)
	apply(t, c, ns, deployment("ends", busybox, "echo no such setting >&2; exit 1", ""))
	err := waitUntilNamed(t, []string{"container main", "with exit code 1", `it wrote "no such setting"`}, func(ctx context.Context) error {
		return readiness.WaitRollout(ctx, c, "Deployment", ns, "ends")
	})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
}
