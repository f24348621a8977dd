package e2e

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patient is how long an install waits for the lock of one that was killed.
const patient = "--lock-timeout=2m"

// killed begins installs and kills each at a random moment.
func (k *kept) killed(t *testing.T, times int, args ...string) {
	t.Helper()
	for range times {
		b := k.begin(t, "install", append(args, patient)...)
		after := time.Duration(1+rand.IntN(20_000)) * time.Millisecond
		time.Sleep(after)
		require.NoError(t, b.cmd.Process.Kill(), "it takes longer than that")
		_ = b.cmd.Wait()
		t.Logf("slipway install (%s): killed after %s", k.Name, after)
	}
}

// manifestsThere installs the platform of manifests on a cluster that is there already, with
// the namespace of somebody else's, and takes it out again: what uses others goes before
// them, and the label of the node too.
func (k *kept) manifestsThere(t *testing.T) {
	const label = "identity.example/database"
	release := changedRelease(t, filepath.Join(root(t), "examples/platform/manifests/1.0.0"),
		"      - endpoint: \"identity/postgres:5432\"\n", "      - endpoint: \"identity/postgres:5432\"\n    node: {label: "+label+"=here}\n")
	labelled := func() string { return k.kubectl(t, "get", "nodes", "-l", label+"=here", "-o", "name") }
	require.Empty(t, labelled())
	k.kubectl(t, "create", "namespace", "identity")
	k.kubectl(t, "create", "configmap", "-n", "identity", "theirs", "--from-literal=colour=red")
	before := k.everything(t)
	k.kubectl(t, "create", "configmap", "-n", "identity", "settings", "--from-literal=theirs=yes")

	k.killed(t, 1, "--adopt", "--platform", release)
	r := k.must(t, "install", "--adopt", "--platform", release, patient)
	require.Equal(t, 1, strings.Count(labelled(), "node/"))
	now := k.everything(t)
	for name, text := range before {
		if !strings.Contains(name, " Node ") && name != "v1 Namespace <nil>/identity" { // which have labels
			require.Equal(t, text, now[name], name)
		}
	}
	k.requireNoRestart(t)
	made := k.generated(t)
	again := k.must(t, "install", "--platform", release)
	for _, step := range []string{"preorchestrator/secrets", "orchestrator/postgres", "orchestrator/dex", "orchestrator/console", "postorchestrator/access"} {
		require.Regexp(t, `(?m)^\s*`+step+`\s+reused`, again.out)
	}
	require.Equal(t, made, k.generated(t))

	watched := k.watchPods(t, "identity")
	r = k.must(t, "destroy")
	require.Regexp(t, `infrastructure/inventory\s+succeeded`, r.out)
	gone := watched()
	require.Less(t, gone["console"], gone["dex"], "%v", gone)
	require.Less(t, gone["dex"], gone["postgres"], "%v", gone)
	require.Empty(t, labelled())
	k.requireAgain(t, before)
	k.kubectl(t, "delete", "namespace", "identity")
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
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "ADDED postgres") }, time.Minute, 100*time.Millisecond, "%s", out.String())
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
