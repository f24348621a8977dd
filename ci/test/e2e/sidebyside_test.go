package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestTwoDeploymentsSideBySide configures two, which are saved by name, one of them in
// the form, and installs their first half at the same time; one fails at its last step.
// Each has its own cluster, passwords and records, and removing what the failed one left
// leaves the other alone.
func TestTwoDeploymentsSideBySide(t *testing.T) {
	takesLong(t)
	inTurn(t)
	left, right := open(t, "e2e-left"), open(t, "e2e-right")
	const last = "preorchestrator/secrets"
	configs := t.TempDir()
	left.Config, right.Config = configs, configs
	cli := func(t *testing.T, d deployment, command string, args ...string) result {
		t.Helper()
		r := finish(t, d.CLI(t.Context(), command, args...))
		t.Logf("slipway %s %s (%s): exit %d after %s", command, strings.Join(args, " "), d.Name, r.code, r.took.Round(time.Second))
		return r
	}
	s := left.form(t, t.TempDir(), configs, nil)
	s.shows("platform.release")
	s.press("Enter", "Enter", "C-u", "=e2e-left", "Enter", "C-u", "=left.example", "Enter", "Enter", "Enter", "Enter", "Enter", "Enter", "Enter", "Enter", "Enter")
	s.shows("e2e-left.yaml?")
	s.press("Enter")
	s.shows("slipway install --name e2e-left")
	nameless := right // its name is in what it is given
	nameless.Name = ""
	r := cli(t, nameless, "configure", "--name", "e2e-right", "--set", "global.scale=50", "--set", "global.domain=right.example")
	require.Zero(t, r.code, r.err)
	const identity = `kubectl get namespace kube-system -o 'jsonpath={.metadata.uid} '
kubectl get secret -n gitea gitea-admin -o 'jsonpath={.data.password}' | sha256sum`
	for name, more := range map[string]string{left.Name: "", right.Name: ", {name: gate, after: " + last + ", script: 'exit 3'}"} {
		file := filepath.Join(configs, "deployments", name+".yaml")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		text = fmt.Appendf(text, "hooks: [{name: identity, after: %s, kubeconfig: true, script: %q}%s]\n", last, identity, more)
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
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
	both("destroy", // whatever an earlier run of the tests left
		func(t *testing.T) { left.ok(t, "destroy") },
		func(t *testing.T) { cli(t, right, "destroy", "--yes", "--ignore-not-found") })
	both("install",
		func(t *testing.T) {
			current := left // the first that was saved
			current.Name = ""
			r := cli(t, current, "install", "--until", last)
			require.Zero(t, r.code, slipway.Tail(r.err))
			require.Contains(t, r.err, "deployment e2e-left (chosen with slipway use;")
		},
		func(t *testing.T) {
			r := cli(t, right, "install", "--until", last)
			require.Equal(t, 4, r.code, slipway.Tail(r.err))
			require.Contains(t, r.err, "run the hook gate after "+last, "it is in the saved configuration")
		})

	seen := func(d deployment) (cluster, password string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "report")
		require.Zero(t, cli(t, d, "report", "--out", dir).code)
		line := regexp.MustCompile(`(?m)^([0-9a-f-]{36}) ([0-9a-f]{64})  -$`).FindStringSubmatch(read(t, dir, "hooks/identity.txt"))
		require.NotNil(t, line, d.Name)
		return line[1], line[2]
	}
	cluster, password := seen(left)
	otherCluster, otherPassword := seen(right)
	require.NotEqual(t, cluster, otherCluster)
	require.NotEqual(t, password, otherPassword)

	r = cli(t, right, "destroy", "--yes")
	require.Regexp(t, `infrastructure/inventory\s+succeeded`, r.out, "nothing is left of the failed install")
	require.Equal(t, 2, right.call(t, "status").code, "the removed one is gone")
	right.ok(t, "destroy") // again: there is nothing to do
	require.Equal(t, cluster+" "+password+"  -\n", cli(t, left, "toolchain", "--", "sh", "-ceu", identity).out, "the other one is as it was")
	require.Zero(t, cli(t, left, "destroy", "--yes").code)
}
