package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/e2e/slipway"
)

// TestTwoDeploymentsSideBySide installs two at the same time, of which one fails
// at an app: each has its own cluster, passwords and records, and removing what the
// failed one left leaves the other alone.
func TestTwoDeploymentsSideBySide(t *testing.T) {
	left, right := open(t, "e2e-left"), open(t, "e2e-right")
	both := func(name string, onLeft, onRight func(*testing.T)) {
		require.True(t, t.Run(name, func(t *testing.T) {
			for d, do := range map[string]func(*testing.T){left.Name: onLeft, right.Name: onRight} {
				t.Run(d, func(t *testing.T) {
					t.Parallel()
					do(t)
				})
			}
		}))
	}
	broken, config := brokenPlatform(t), write(t, configured+"advanced: {timeouts: {app: 45s}}\n")
	both("destroy", // whatever an earlier run of the tests left
		func(t *testing.T) { left.ok(t, "destroy") },
		func(t *testing.T) { right.ok(t, "destroy") })
	both("install",
		func(t *testing.T) { left.ok(t, "install") },
		func(t *testing.T) {
			r := right.call(t, "install", "--platform", broken, "--config", config)
			require.Contains(t, []int{4, 5}, r.code, slipway.Tail(r.err))
			require.Contains(t, r.err, "guestbook")
		})

	const identity = `kubectl get namespace kube-system -o 'jsonpath={.metadata.uid}'
kubectl get secret -n gitea gitea-admin -o 'jsonpath={.data}'`
	of := map[string]string{left.Name: left.shell(t, identity), right.Name: right.shell(t, identity)}
	require.Contains(t, of[left.Name], "password")
	require.NotEqual(t, of[left.Name], of[right.Name], "they have one cluster or one password")

	r := right.ok(t, "destroy")
	require.Regexp(t, `infrastructure/inventory\s+succeeded`, r.out, "nothing is left of the failed install")
	require.Equal(t, 2, right.call(t, "status").code, "the removed one is gone")
	right.ok(t, "destroy") // again: there is nothing to do
	requireHealthy(t, left.status(t), apps...)
	require.Equal(t, of[left.Name], left.shell(t, identity), "the other one is as it was")
	left.ok(t, "destroy")
}
