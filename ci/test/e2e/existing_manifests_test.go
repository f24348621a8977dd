package e2e

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// patient is how long an install waits for the lock of one that was killed.
const patient = "--lock-timeout=2m"

// killed begins an install and kills it at a random moment within a time that it takes
// longer than, but not in the first quarter, in which no component is installed yet.
func (k *kept) killed(t *testing.T, within time.Duration, args ...string) {
	t.Helper()
	b := k.begin(t, "install", append(args, patient)...)
	after := within/4 + rand.N(within*3/4)
	time.Sleep(after)
	require.NoError(t, b.cmd.Process.Kill())
	_ = b.cmd.Wait()
	require.Equal(t, -1, b.cmd.ProcessState.ExitCode(), "it was not killed: it takes less than %s: %s", after, slipway.Tail(b.printed()))
	t.Logf("slipway install (%s): killed after %s", k.Name, after)
}

// manifestsThere installs the platform of manifests on an existing cluster, in
// a namespace of its own and one of somebody else's, and takes it out again: Dex goes first, for
// remove.order says so, then what uses others before them, the namespace that is its own, and
// the label of the node too. The second time the install is killed on the way: what comes out
// is the same.
func (k *kept) manifestsThere(t *testing.T) {
	const label = "identity.example/database"
	release := changedRelease(t, filepath.Join(root(t), "examples/platform/manifests/1.0.0"),
		"      - endpoint: \"identity/postgres:5432\"\n", "      - endpoint: \"identity/postgres:5432\"\n    node: {label: "+label+"=here}\n")
	release = changedRelease(t, release, "\nnamespaces:\n", "\nnamespaces:\n  - name: lent\n")
	release = changedRelease(t, release, "\nconfigMaps:\n", "\nconfigMaps:\n  - {name: settings, namespace: lent, data: {colour: blue}}\n")
	release = changedRelease(t, release, "\n  order: [console]\n", "\n  order: [dex]\n") // by after, it would go after the console
	labelled := func() string { return k.kubectl(t, "get", "nodes", "-l", label+"=here", "-o", "name") }
	require.Empty(t, labelled())
	k.kubectl(t, "create", "namespace", "lent")
	k.kubectl(t, "create", "configmap", "-n", "lent", "theirs", "--from-literal=colour=red")
	before := k.everything(t)
	require.NotContains(t, before, "v1 Namespace <nil>/identity")
	inTheWay := func() { k.kubectl(t, "create", "configmap", "-n", "lent", "settings", "--from-literal=theirs=yes") }

	inTheWay()
	undisturbed := k.must(t, "install", "--take-ownership", "--platform", release)
	clean := k.facts(t)
	k.must(t, "destroy", "--yes")
	k.requireAgain(t, before)

	inTheWay()
	k.killed(t, undisturbed.took/2, "--take-ownership", "--platform", release)
	r := k.must(t, "install", "--take-ownership", "--platform", release, patient)
	require.Equal(t, 1, strings.Count(labelled(), "node/"))
	now := k.everything(t)
	for name, text := range before {
		if !strings.Contains(name, " Node ") && name != "v1 Namespace <nil>/lent" { // which have labels
			require.Equal(t, text, now[name], name)
		}
	}
	require.NoError(t, clean.compare(k.facts(t)))
	k.requireWaited(t)
	k.requireNoRestart(t)
	made := k.generated(t)
	again := k.must(t, "install", "--platform", release)
	for _, step := range []string{"preorchestrator/secrets", "orchestrator/postgres", "orchestrator/dex", "orchestrator/console", "postorchestrator/access"} {
		require.Regexp(t, `(?m)^\s*`+step+`\s+reused`, again.out)
	}
	require.Equal(t, made, k.generated(t))

	watched := k.watchPods(t, "identity")
	r = k.must(t, "destroy", "--yes")
	require.Regexp(t, `infrastructure/inventory\s+succeeded`, r.out)
	gone := watched()
	require.Less(t, gone["dex"], gone["console"], "%v", gone)
	require.Less(t, gone["console"], gone["postgres"], "%v", gone)
	require.Empty(t, labelled())
	require.Empty(t, k.kubectl(t, "get", "namespace", "identity", "--ignore-not-found"))
	k.requireAgain(t, before)
	k.kubectl(t, "delete", "namespace", "lent")
}

// watchPods notes in which order the last pod of each app in a namespace goes. The function
// that it returns ends that.
func (k *kept) watchPods(t *testing.T, namespace string) func() map[string]int {
	t.Helper()
	cmd := k.kubectlCommand(t.Context(), "get", "pods", "-n", namespace, "--watch", "--output-watch-events",
		"-o", `jsonpath={.type} {.object.metadata.labels.app\.kubernetes\.io/name}{"\n"}`)
	var out transcript
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "ADDED postgres") }, 5*time.Minute, 100*time.Millisecond, "%s", out.String())
	return func() map[string]int {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		gone := map[string]int{}
		for n, line := range strings.Split(out.String(), "\n") {
			if app, ok := strings.CutPrefix(line, "DELETED "); ok {
				gone[app] = n
			}
		}
		for _, app := range []string{"console", "dex", "postgres"} {
			require.Contains(t, gone, app, "%s", out.String())
		}
		return gone
	}
}

// forget removes what an earlier run of the tests left of the deployment, be it of a cluster
// that is gone.
func (k *kept) forget(t *testing.T) {
	t.Helper()
	r := k.cli(t, "destroy", "--yes", "--ignore-not-found")
	if strings.Contains(r.err, "INF-013") {
		k.must(t, "toolchain", "--", "rm", "-rf", "/slipway/state/cluster")
		r = k.cli(t, "destroy", "--yes", "--ignore-not-found")
	}
	require.Zero(t, r.code, r.err)
}
