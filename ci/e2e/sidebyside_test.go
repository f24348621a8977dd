package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTwoDeploymentsSideBySide installs two at the same time: each has its own
// cluster, passwords and records, and removing one leaves the other alone.
func TestTwoDeploymentsSideBySide(t *testing.T) {
	left, right := open(t, "e2e-left"), open(t, "e2e-right")
	both := func(function string) {
		require.True(t, t.Run(function, func(t *testing.T) {
			for _, d := range []deployment{left, right} {
				t.Run(d.name, func(t *testing.T) {
					t.Parallel()
					d.ok(t, function)
				})
			}
		}))
	}
	both("destroy") // whatever an earlier run of the tests left
	both("install")

	const identity = `kubectl get namespace kube-system -o 'jsonpath={.metadata.uid}'
kubectl get secret -n gitea gitea-admin -o 'jsonpath={.data}'`
	of := map[string]string{left.name: left.shell(t, identity), right.name: right.shell(t, identity)}
	require.Contains(t, of[left.name], "password")
	require.NotEqual(t, of[left.name], of[right.name], "they have one cluster or one password")

	left.ok(t, "destroy")
	require.Equal(t, 2, left.call(t, "status").code, "the removed one is gone")
	requireHealthy(t, right.status(t), apps...)
	require.Equal(t, of[right.name], right.shell(t, identity), "the other one is as it was")
	right.ok(t, "destroy")
}
