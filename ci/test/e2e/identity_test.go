package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// requiring makes a copy of the release wait for what others give; see its README.md.
const requiring = `
requires:
  - {configMap: identity/branding, keys: [title]}
  - {secret: identity/license, keys: [holder]}
`

// door is a component of a copy of the release: a gate on something that the test makes.
const door = `
  - name: door
    kind: gate
    after: [postgres]
    ready:
      - cel: {object: v1/ConfigMap identity/door, expression: "object.data.open == 'yes'"}
`

// behind is one after the console, in a copy of the release with its file.
const (
	behind     = "\n  - {name: behind, kind: manifests, path: behind, namespace: identity, after: [console]}\n"
	behindFile = "{apiVersion: v1, kind: ConfigMap, metadata: {name: behind}, data: {made: \"yes\"}}\n"
)

// TestIdentityPlatform follows the platform of static manifests from a cluster in which
// something is in its way to its removal.
func TestIdentityPlatform(t *testing.T) {
	inTurn(t)
	d := open(t, "e2e-identity")
	images := bundled(t, d.Bundle)
	require.Contains(t, images, "dex", "the bundle is for another platform: run make e2e, or make bundle PLATFORM=examples/platform/manifests/1.0.0")
	release := filepath.Join(root(t), "examples/platform/manifests/1.0.0")
	const plain = configured + "global: {domain: " + identityDomain + "}\nlocal: {apiPort: 7443, ports: [443, 5556]}\n"
	k := &kept{deployment: d, config: write(t, plain)}
	finish(t, d.CLI(t.Context(), "cluster", "--stop")) // whatever an earlier run of the tests left
	k.must(t, "destroy", "--yes", "--ignore-not-found")
	t.Cleanup(func() { _ = finish(t, d.CLI(context.Background(), "cluster", "--stop")) })

	k.must(t, "install", "--keep-cluster", "--until", "infrastructure/cluster", "--platform", release)
	k.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	k.must(t, "kubeconfig", "--out", k.kubeconfig)

	// Each builds on the one before.
	stage := func(name string, do func(t *testing.T)) { require.True(t, t.Run(name, do)) }
	stage("what is somebody else's is left alone", func(t *testing.T) {
		k.kubectl(t, "create", "namespace", "identity")
		k.kubectl(t, "create", "configmap", "-n", "identity", "settings", "--from-literal=theirs=yes")
		r := k.cli(t, "install", "--platform", release)
		require.Equal(t, 3, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "INF-034")
		require.Contains(t, r.err, "Namespace identity (without an owner), ConfigMap identity/settings (without an owner); nothing was created")
		require.NotContains(t, k.kubectl(t, "get", "namespaces", "-o", "name"), "slipway-checks")
		require.NotContains(t, k.kubectl(t, "get", "namespaces", "-o", "name"), "slipway-system")
		require.Empty(t, k.kubectl(t, "get", "secrets,deployments,jobs", "-n", "identity", "-o", "name"))
		require.NotContains(t, k.kubectl(t, "get", "namespace", "identity", "-o", "jsonpath={.metadata.labels}"), "slipway")
		k.kubectl(t, "delete", "namespace", "identity")
	})

	var made string
	stage("an install that fails after the secrets were made", func(t *testing.T) {
		gate := k.with(write(t, plain+"hooks: [{name: gate, after: preorchestrator/secrets, script: 'exit 3'}]\n"))
		r := gate.cli(t, "install", "--platform", release)
		require.Equal(t, 4, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "run the hook gate after preorchestrator/secrets")
		made = k.generated(t)
		require.Len(t, strings.Split(strings.TrimSpace(made), "\n"), 7)
		require.Empty(t, k.kubectl(t, "get", "deployments,statefulsets,jobs", "-n", "identity", "-o", "name"))
	})

	waiting := changedRelease(t, release, "\n    after: [postgres]\n", "\n    after: [door]\n") // the databases
	waiting = changedRelease(t, waiting, "\ncomponents:\n", "\ncomponents:"+door)
	waiting = changedRelease(t, waiting, "", requiring)
	first := k.begin(t, "install", "--platform", waiting)
	stage("it waits for what others give, and says for what", func(t *testing.T) {
		first.sees(t, "preorchestrator/requires: waiting for configmap identity/branding, secret identity/license")
		k.kubectl(t, "create", "configmap", "-n", "identity", "branding", "--from-literal=colour=red")
		first.sees(t, "preorchestrator/requires: waiting for configmap identity/branding (key title), secret identity/license")
		k.kubectl(t, "patch", "configmap", "-n", "identity", "branding", "--patch", `{"data": {"title": "The branded console"}}`)
		first.sees(t, "preorchestrator/requires: waiting for secret identity/license")
		require.NotContains(t, first.printed(), "orchestrator/postgres: running")
		require.Empty(t, k.kubectl(t, "get", "deployments,statefulsets,jobs", "-n", "identity", "-o", "name"))
		require.Regexp(t, "^Waiting .*secret identity/license", k.kubectl(t, "get", "configmap", "-n", "slipway-system", "slipway-status", "-o", "jsonpath={.data.state} {.data.message}"))
		k.kubectl(t, "create", "secret", "generic", "-n", "identity", "license", "--from-literal=holder=Ada")
		first.sees(t, "orchestrator/postgres: running")
		require.Equal(t, made, k.generated(t), "the secrets of the run that failed")
	})

	stage("the API server is away for half a minute", long(k.outage))

	var opened time.Time
	stage("what comes after a gate waits for it", func(t *testing.T) {
		first.sees(t, "orchestrator/door: running")
		const says = "Waiting: component door: waiting for the gate object.data.open == 'yes' of v1/ConfigMap identity/door"
		require.Eventually(t, func() bool {
			told, err := k.kubectlCommand(t.Context(), "get", "configmap", "-n", "slipway-system", "slipway-status", "-o", "jsonpath={.data.state}: {.data.message}").Output()
			return err == nil && strings.HasPrefix(string(told), says) && strings.HasSuffix(string(told), ": it is not there")
		}, time.Minute, 200*time.Millisecond)
		require.NotContains(t, first.printed(), "orchestrator/databases: running")
		require.Empty(t, k.kubectl(t, "get", "jobs,deployments", "-n", "identity", "-o", "name"))
		opened = time.Now()
		k.kubectl(t, "create", "configmap", "-n", "identity", "door", "--from-literal=open=yes")
	})

	stage("the install completes", func(t *testing.T) {
		require.Zero(t, first.wait(t), slipway.Tail(first.printed()))
		require.Equal(t, "true", k.kubectl(t, "get", "pods", "-n", "identity", "-l", "app.kubernetes.io/name=dex", "-o", "jsonpath={.items[*].status.containerStatuses[*].ready}"))
		require.Equal(t, made, k.generated(t))
	})

	stage("no job was made before what it uses was healthy", func(t *testing.T) {
		k.requireWaited(t)
		r := k.record(t)
		r.requireOrder(t, "orchestrator/postgres", "orchestrator/door", "orchestrator/databases", "orchestrator/dex",
			"orchestrator/create-admin", "orchestrator/console", "orchestrator/sign-in")
		gate := r.step(t, "orchestrator/door")
		require.WithinRange(t, opened, gate.Started, gate.Finished, "it began before there was what it waited for")
	})

	stage("a user signs in", func(t *testing.T) {
		b := k.visitor(t)
		page := b.get("/", 200)
		require.Contains(t, page, "<h1>The branded console</h1>")
		require.Contains(t, page, "Licensed to Ada")
		require.NotContains(t, b.signIn(k.secret(t, "admin", "email"), "wrong"), "Signed in as")
		page = b.signIn(k.secret(t, "admin", "email"), k.secret(t, "admin", "password"))
		require.Contains(t, page, "Signed in as <strong>admin</strong>")
		require.Contains(t, page, k.secret(t, "cluster", "id"))
		require.Regexp(t, `<td>admin</td><td>admin@`+identityDomain+`</td>`, page, "the row is in the database")
	})

	stage("a job that has completed is done", long(func(t *testing.T) {
		require.Equal(t, "create-admin=1 databases=1 migrate=1 ", k.kubectl(t, "get", "jobs", "-n", "identity", "-o", "jsonpath={range .items[*]}{.metadata.name}={.status.succeeded} {end}"))
		again := k.must(t, "install", "--platform", waiting)
		for _, step := range []string{"databases", "create-admin", "migrate", "console", "sign-in"} {
			require.Regexp(t, `(?m)^\s*orchestrator/`+step+`\s+reused`, again.out)
		}
		k.kubectl(t, "delete", "job", "-n", "identity", "create-admin")
		k.must(t, "install", "--platform", waiting)
		require.NotContains(t, k.kubectl(t, "get", "jobs", "-n", "identity", "-o", "name"), "create-admin", "it is not made again")
	}))

	stage("a changed secret is seen by a pod that starts again", func(t *testing.T) {
		k.kubectl(t, "patch", "secret", "-n", "identity", "license", "--patch", `{"stringData": {"holder": "Grace"}}`)
		require.Contains(t, k.visitor(t).get("/", 200), "Licensed to Ada", "it was read when the Pod started")
		k.kubectl(t, "delete", "pods", "-n", "identity", "-l", "app.kubernetes.io/name=console")
		k.kubectl(t, "rollout", "status", "-n", "identity", "deployment/console", "--timeout=2m")
		require.Contains(t, k.visitor(t).get("/", 200), "Licensed to Grace")
	})

	stage("a platform that is not healthy is not installed", long(func(t *testing.T) {
		state := func(code int, args ...string) (s status) {
			t.Helper()
			r := k.cli(t, "status", append(args, "--output", "json")...)
			require.Equal(t, code, r.code, slipway.Tail(r.err))
			require.Equal(t, code == 4, strings.Contains(r.err, "DEP-016"), r.err)
			require.NoError(t, json.Unmarshal([]byte(r.out), &s), r.out)
			return s
		}
		shut := func(s status) (out []string) {
			for _, g := range s.Gates {
				if !g.Open {
					out = append(out, g.Step+": "+g.Seen)
				}
			}
			return out
		}
		live := state(0, "--live", "--platform", waiting)
		require.Equal(t, "Success", live.State)
		require.NotEmpty(t, live.Gates)
		require.Empty(t, shut(live))
		maintain := func(sql string) {
			t.Helper()
			k.kubectl(t, "exec", "-n", "identity", "postgres-0", "--", "psql", "-U", "postgres", "-d", "console", "-c", sql)
		}
		maintain("INSERT INTO maintenance (reason) VALUES ('moving house')")
		require.Contains(t, k.visitor(t).get("/healthz", 503), "in maintenance: moving house")
		require.Equal(t, []string{"orchestrator/console: answered 503, not 200: in maintenance: moving house"}, shut(state(4, "--live", "--platform", waiting)))
		whole := changedRelease(t, release, "\ncomponents:\n", "\ncomponents:"+behind)
		require.NoError(t, os.Mkdir(filepath.Join(whole, "behind"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(whole, "behind", "behind.yaml"), []byte(behindFile), 0o600))
		behindIt := func() string {
			t.Helper()
			return k.kubectl(t, "get", "configmap", "-n", "identity", "behind", "--ignore-not-found", "-o", "jsonpath={.data.made}")
		}
		short := changedRelease(t, whole, "path: /healthz}\n  # Both", "path: /healthz}\n        deadline: 10s\n  # Both")
		r := k.cli(t, "install", "--platform", short)
		require.Contains(t, []int{4, 5}, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "GAT-001")
		require.Contains(t, r.err, "answered 503, not 200: in maintenance: moving house")
		require.Equal(t, "failed", k.outcome(t))
		require.Equal(t, "Failed", state(0).State)
		failed := k.record(t)
		require.Equal(t, "failed", failed.step(t, "orchestrator/console").Status)
		for _, name := range []string{"sign-in", "behind"} {
			require.Equal(t, "blocked", failed.step(t, "orchestrator/"+name).Status, name)
		}
		require.Empty(t, behindIt())

		mended := k.begin(t, "install", "--platform", whole)
		mended.sees(t, "orchestrator/console: waiting for the gate http identity/console:443/healthz: answered 503")
		now := state(0)
		require.Equal(t, "Waiting", now.State)
		require.Len(t, now.Waiting, 1)
		w := now.Waiting[0]
		require.Equal(t, "orchestrator/console the gate http identity/console:443/healthz: answered 503, not 200: in maintenance: moving house", w.Step+" "+w.For+": "+w.Seen)
		require.WithinRange(t, time.Now(), w.Since, w.Until)
		require.Regexp(t, `^Waiting: component console: waiting for .*answered 503`, k.kubectl(t, "get", "configmap", "-n", "slipway-system", "slipway-status", "-o", "jsonpath={.data.state}: {.data.message}"))
		k.requireMounted(t, "orchestrator/console", whole)
		require.Empty(t, behindIt())
		maintain("DELETE FROM maintenance")
		require.Zero(t, mended.wait(t), slipway.Tail(mended.printed()))
		require.Equal(t, "succeeded", k.outcome(t))
		require.Equal(t, "yes", behindIt())
		k.record(t).requireOrder(t, "orchestrator/console", "orchestrator/behind")
	}))

	stage("what is in the cluster is the release's, but for ConfigMaps and Secrets", func(t *testing.T) {
		k.must(t, "install", "--platform", release)
		k.requireFiled(t, release, images)
	})

	stage("what was changed by hand is undone", long(func(t *testing.T) {
		undoesAnyDrift(t, k.Name, k.kubectl, func(t *testing.T) result { return k.must(t, "install", "--platform", release) }, "identity/identity-tls")
	}))

	stage("a component that is switched off is taken out, and not by the plan", func(t *testing.T) {
		off := k.with(write(t, plain+"platform: {components: {console: {enabled: false}, sign-in: {enabled: false}}}\n"))
		there := func() string {
			t.Helper()
			return k.kubectl(t, "get", "deployments,services,jobs,configmaps,secrets,pods", "-n", "identity", "-o",
				`jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.deletionTimestamp}{"\n"}{end}`)
		}
		before := there()
		require.Subset(t, off.plan(t, "--platform", release).names(), []string{"remove Deployment identity/console", "remove Service identity/console"})
		require.Equal(t, before, there(), "a plan changes nothing")
		r := off.must(t, "install", "--platform", release)
		require.Regexp(t, `(?m)^\s*orchestrator/prune\s+succeeded`, r.out)
		require.NotContains(t, k.kubectl(t, "get", "deployments,services,jobs", "-n", "identity", "-o", "name"), "console")
		require.Regexp(t, `(?m)^\s*orchestrator/prune\s+reused`, off.must(t, "install", "--platform", release).out)
	})

	stage("gates are open in a cluster that has to be started", func(t *testing.T) {
		k.must(t, "cluster", "--stop")
		var s status
		require.NoError(t, json.Unmarshal([]byte(k.must(t, "status", "--live", "--platform", release, "--output", "json").out), &s))
		require.Equal(t, "Success", s.State)
		require.NotEmpty(t, s.Gates)
		for _, g := range s.Gates {
			require.True(t, g.Open, "%s: %s", g.Step, g.Seen)
		}
	})

	stage("destroy leaves nothing", func(t *testing.T) {
		r := k.must(t, "destroy", "--yes")
		require.Contains(t, r.err, "nothing is left")
		k.must(t, "destroy", "--yes") // again: it is known
		r = k.cli(t, "status")
		require.Equal(t, 2, r.code)
		require.Equal(t, "e2e-identity: NotStarted\n", r.out)
		conn := finish(t, k.kubectlCommand(t.Context(), "get", "namespaces", "--request-timeout=5s"))
		require.NotZero(t, conn.code, "the cluster is gone, with all that was in it")
	})
}

// bundled are the images of a bundle by short name, by digest.
func bundled(t *testing.T, dir string) map[string]string {
	t.Helper()
	var index struct {
		Images []struct{ Name, Ref, Digest string }
	}
	text, err := os.ReadFile(filepath.Join(dir, "bundle.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &index))
	out := map[string]string{}
	for _, i := range index.Images {
		out[i.Name] = i.Ref[:strings.LastIndexByte(i.Ref, ':')] + "@" + i.Digest
	}
	return out
}

// changedRelease is a copy of a platform release whose platform.yaml has other in place of
// part, or, without a part, at its end.
func changedRelease(t *testing.T, release, part, other string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "platform")
	require.NoError(t, os.CopyFS(dir, os.DirFS(release)))
	text := read(t, dir, "platform.yaml")
	if part == "" {
		text += other
	} else {
		require.Equal(t, 1, strings.Count(text, part))
		text = strings.Replace(text, part, other, 1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "platform.yaml"), []byte(text), 0o600))
	return dir
}
