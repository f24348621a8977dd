package e2e

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// apps are those of the reference platform.
var apps = []string{"base", "database", "guestbook"}

// snapshot prints what an install that changes nothing must leave alone: the
// generation of every object that has one, the content of the Secrets, and the
// specs of the Applications, whose generation counts status updates too. The first
// line is another one each time.
const snapshot = `
cat /proc/sys/kernel/random/uuid
for kind in namespaces deployments.apps statefulsets.apps daemonsets.apps jobs.batch services \
  persistentvolumeclaims storageclasses customresourcedefinitions appprojects.argoproj.io networkpolicies; do
  kubectl get "$kind" -A --no-headers -o 'custom-columns=K:.kind,N:.metadata.namespace,M:.metadata.name,U:.metadata.uid,G:.metadata.generation' | sed '/^Service .* kubernetes /d'
done
kubectl get secrets -A --no-headers -o 'custom-columns=K:.kind,N:.metadata.namespace,M:.metadata.name,U:.metadata.uid,D:.data' | sort | sha256sum
kubectl get secrets -A --no-headers -o 'custom-columns=N:.metadata.namespace,M:.metadata.name' | sort
kubectl get applications.argoproj.io -A --no-headers -o 'custom-columns=N:.metadata.namespace,M:.metadata.name,U:.metadata.uid,S:.spec' | sort
`

// apart succeeds in a hook that does not reach the cluster.
const apart = `test ! -e /slipway/kubeconfig
test -z "${KUBECONFIG:-}"
! getent hosts cluster`

// mark is printed before it.
const mark = "#####"

// emptySHA256 is the digest of nothing: of a kubectl that failed in a pipe.
const emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// forgotten is what a dagger call ends with, at once, where the engine answers it out of the
// session of a client that has just been killed.
const forgotten = "failed to get requester session"

// lifecyclePorts are what TestLifecycle's cluster publishes. Nothing answers on the second one.
const lifecyclePorts = "local: {apiPort: 6543, ports: [18081]}\n"

// TestLifecycle follows one deployment from interrupted installs to its removal.
func TestLifecycle(t *testing.T) {
	inTurn(t)
	d := open(t, "e2e")
	finish(t, d.CLI(t.Context(), "cluster", "--stop")) // whatever an earlier run of the tests left
	finish(t, d.CLI(t.Context(), "destroy", "--yes", "--ignore-not-found"))
	t.Cleanup(func() { _ = finish(t, d.CLI(context.Background(), "cluster", "--stop")) })

	sysctls := sysctlsOnlyRaised(t)
	got := collector(t)
	interrupts(t, d, got)

	t.Run("a killed install leaves what the next one continues", func(t *testing.T) {
		cmd := d.begin(t, nil, "orchestrator/sync: running", "install")
		time.Sleep(2 * time.Second) // so that it is in the middle of it
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
	})

	k := &kept{deployment: d, config: write(t, configured+fmt.Sprintf("hooks: [{name: snapshot, after: postorchestrator/access, kubeconfig: true, script: %q}, {name: apart, after: postorchestrator/access, script: %q}]\n",
		"echo '"+mark+"'"+snapshot, apart))}
	t.Run("install", func(t *testing.T) {
		cmd := d.readme(t, d.Root, "dagger call install", "--name", d.Name, "--config", k.config)
		cmd.Env = append(cmd.Env, got.env...)
		r := finish(t, cmd)
		d.printed.add(r.out + r.err)
		if strings.Contains(r.err, forgotten) {
			r = d.call(t, "install", "--config", k.config)
		}
		require.Zero(t, r.code, slipway.Tail(r.err))
		require.Regexp(t, `(?m)^\s*preorchestrator/gitea\s+reused`, r.out)
		requireInstalled(t, r)
	})

	var before string
	t.Run("a second install changes nothing, and lets no other run beside it", func(t *testing.T) {
		var nonce, laterNonce, later string
		nonce, before = k.snapshot(t)
		require.Contains(t, before, "Deployment ", "the snapshot holds the objects")
		require.Regexp(t, `(?m)^gitea\s+gitea-admin`, before, "and the Secrets")
		require.NotContains(t, before, emptySHA256)
		serial := k.serial(t)
		var out strings.Builder
		// The step before that, which starts the node, waits for the lock. The second one starts faster: it is no module.
		first := d.begin(t, &out, "infrastructure/verify: running", "install", "--config", k.config)
		second := finish(t, d.CLI(t.Context(), "install", "--lock-timeout", "0s"))
		require.Equal(t, 6, second.code, slipway.Tail(second.err))
		require.Contains(t, second.err, "LOK-001")
		require.Regexp(t, `dagger call@\S+ \(install, run \S+\) has had the lock since`, second.err)
		followed := finish(t, d.CLI(t.Context(), "logs", "--follow"))
		require.NoError(t, first.Wait(), "the first goes on")
		require.Zero(t, followed.code, slipway.Tail(followed.err))
		require.Regexp(t, `slipway: run \S+: succeeded`, followed.err)
		require.Contains(t, followed.out, "==> infrastructure/preflight <==")
		require.Regexp(t, `(?m)^\s*orchestrator/sync\s+reused`, out.String())
		laterNonce, later = k.snapshot(t)
		require.NotEqual(t, nonce, laterNonce, "the engine answered from its cache")
		require.Equal(t, before, later)
		require.Equal(t, serial, k.serial(t))
		runs := d.ok(t, "runs").out
		require.Regexp(t, `(?m)^\S+\s+install\s+succeeded\s`, runs)
		engine := d
		engine.Name = "" // of all deployments
		require.Regexp(t, `(?m)^`+d.Name+` +reference \S+ +\S+ +install `, engine.ok(t, "list").out)
		require.NotEmpty(t, d.ok(t, "logs", "--step", "infrastructure/preflight").out)
		require.Contains(t, d.ok(t, "doctor").out, "no problems")
	})

	t.Run("the example for GitHub Actions installs and shows its report", long(d.pipeline))

	// The rest is done by the command line tool, with a cluster that keeps running.
	const port = lifecyclePorts
	hooks, err := os.ReadFile(filepath.Join(root(t), "examples/config/hooks.yaml"))
	require.NoError(t, err)
	k = k.with(write(t, string(hooks)+port))
	t.Run("status, kubectl and the web app agree", func(t *testing.T) {
		k := k.with(write(t, configured+port))
		cluster := k.command(t.Context(), "cluster", "--keep-cluster")
		cluster.Env = append(cluster.Env, got.env...) // for what joins its session, too
		r := finish(t, cluster)
		require.Zero(t, r.code, slipway.Tail(r.err))
		var s status
		require.NoError(t, json.Unmarshal([]byte(k.must(t, "status", "--live", "--output", "json").out), &s))
		requireHealthy(t, s, apps...)
		out := k.shell(t, `kubectl get applications.argoproj.io -A --no-headers -o 'custom-columns=M:.metadata.name,S:.status.sync.status,H:.status.health.status'
for i in $(seq 60); do curl -fsS http://cluster/api/entries && break; sleep 1; done`)
		for _, app := range apps {
			require.Regexp(t, `(?m)^`+app+`\s+Synced\s+Healthy`, out)
		}
		require.Contains(t, out, "The slipway is greased.")
		require.Contains(t, d.ok(t, "kubeconfig", "contents").out, "https://127.0.0.1:6443")
		k.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		k.must(t, "kubeconfig", "--out", k.kubeconfig)
		k.requireAlike(t, "slipway.local/")
	})

	t.Run("what the toolchain prints is for who asks only", func(t *testing.T) {
		r := k.cli(t, "toolchain", "--", "sh", "-c", `printf 'c4nary-%s\n' Bn47xLd2; printf 'c4nary-%s\n' Tz19kWe6 >&2; exit 3`)
		require.Equal(t, 3, r.code, r.err)
		require.Equal(t, "c4nary-Bn47xLd2\n", r.out)
		require.Contains(t, r.err, "c4nary-Tz19kWe6\n")
		require.Eventually(t, func() bool {
			spans, _ := got.texts()
			return strings.Contains(spans, "Bn47xLd2")
		}, time.Minute, time.Second, "the command is in a span")
		spans, logged := got.texts()
		for _, printed := range []string{"c4nary-Bn47xLd2", "c4nary-Tz19kWe6"} {
			require.NotContains(t, spans, printed)
			require.NotContains(t, logged, printed)
		}
	})

	t.Run("nobody else reaches the cluster", k.closed(6543, 18081))

	t.Run("nothing enforces NetworkPolicies in it", k.unenforced)

	failed := map[string]string{} // the report of a run that failed
	packages, file := t.TempDir(), ""
	t.Run("a broken image fails at its deadline with its cause", func(t *testing.T) {
		broken := brokenPlatform(t)
		private, public := signingKeys(t)
		k := k.with(write(t, configured+port+"advanced: {timeouts: {app: 45s}, missingImages: pull, save: {key: 'file:"+private+"'}}\n"))
		r := k.cli(t, "install", "--platform", broken)
		require.Contains(t, []int{4, 5}, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "guestbook")
		require.Contains(t, r.err, "45s", "the deadline of the configuration")
		require.Regexp(t, `ErrImagePull|ImagePullBackOff|not found`, r.err)
		require.Contains(t, r.err, "remedy")
		k.must(t, "save", "--out", filepath.Join(packages, "own.tar.zst"), "--platform", broken)
		report := t.TempDir()
		d.ok(t, "report", "export", "--path", report)
		for _, file := range []string{"report.json", "junit.xml", "summary.md", "summary.txt"} {
			require.FileExists(t, filepath.Join(report, file))
		}
		require.FileExists(t, filepath.Join(report, "steps/orchestrator.sync/log.txt"))
		require.NoDirExists(t, filepath.Join(report, "secrets"))
		for _, file := range []string{"report.html", "report.json", "junit.xml", "summary.md", "summary.txt"} {
			failed["the failed run's "+file] = read(t, report, file)
		}
		page, err := os.ReadFile(filepath.Join(report, "report.html"))
		require.NoError(t, err)
		require.Regexp(t, `(?s)<h2 id="applications">.*<th scope="row">guestbook</th>`, string(page), "the apps, although the run failed")
		requireReadable(t, report)
		screenshot(t, filepath.Join(report, "report.html"), "report-failed", 800)
		var files map[string]string
		file, files = k.saved(t, packages, broken, public)
		maps.Copy(failed, files)
	})
	require.NotEmpty(t, file)

	t.Run("the broken image is reproduced elsewhere from its package", long(func(t *testing.T) { d.reproduces(t, file) }))

	t.Run("the corrected platform installs, once the database is saved", func(t *testing.T) {
		r := k.must(t, "install")
		requireInstalled(t, r)
		require.Regexp(t, `(?m)^\s*hooks/notify\s+warned\s`, r.out, "nobody gave its secret")
		dir := k.report(t)
		require.Contains(t, read(t, dir, "hooks/backup.txt"), "/tmp/dump.sql.gz")
		require.Regexp(t, `(?m)^orchestrator/sync: (reused|succeeded) after \d+\.\d+ s$`, read(t, dir, "hooks/timing@orchestrator.sync.txt"))
		require.Equal(t, secrets(before), secrets(k.shell(t, snapshot)))
	})

	t.Run("no secret is anywhere but in the cluster", func(t *testing.T) {
		failed["a span"], failed["a log"] = got.texts()
		k.requireNoLeak(t, failed)
	})

	t.Run("the platform's tests pass, and one that fails is named", long(k.tries))

	t.Run("a larger scale is an install of the same release", long(k.with(write(t, configured+port+"global: {scale: 100}\n")).scales))
	if all() {
		k = k.with(write(t, strings.Replace(string(hooks), "{name: hooked}", "{name: hooked, scale: 100}", 1)+port))
	}

	first := k.secrets(t, k.shell(t, listSecrets))
	t.Run("an upgrade brings the next release, and nothing goes back", k.upgrades)

	t.Run("what users had deployed before it is still there", long(k.keepsWorkloads))

	t.Run("an upgrade that fails loses no row, and a rollback brings the release back", k.keepsData)

	t.Run("a rollback that puts the backup in the data's place asks first", long(k.restoresData))

	t.Run("no secret is in what plans, upgrades and rollbacks wrote", func(t *testing.T) {
		for _, secrets := range []map[string][]string{first, k.secrets(t, k.shell(t, listSecrets))} { // release 1.1.0 rotates one
			requireNone(t, secrets, map[string]string{"what commands wrote": k.printed.String()})
		}
	})

	t.Run("data is migrated", long(k.migrates))

	t.Run("sysctls of this machine are only raised", sysctls)

	t.Run("destroy leaves nothing and is a no-op when repeated", func(t *testing.T) {
		k.must(t, "cluster", "--stop")
		r := d.ok(t, "destroy")
		require.Regexp(t, `infrastructure/inventory\s+succeeded`, r.out)
		k.must(t, "destroy", "--yes")
		s := d.call(t, "status")
		require.Equal(t, 2, s.code)
		require.Contains(t, s.err, "not installed")
	})
}

func TestThreeFaultsAreReportedTogether(t *testing.T) {
	inTurn(t)
	d := open(t, "")
	cmd := d.Module(t.Context(), "install", "--config", filepath.Join(root(t), "examples/config/invalid-three-faults.yaml"))
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), slipway.Tail(string(out)))
	for _, fault := range []string{"CFG-001", "read invalid-three-faults.yaml: ", "My_Platform", "moon", "nobody at example.com"} {
		require.Contains(t, string(out), fault)
	}
	require.NotContains(t, string(out), "infrastructure/", "no step started")
}

// TestWrongBundleFileIsNamed runs alone; see TestForgedBundle.
func TestWrongBundleFileIsNamed(t *testing.T) {
	d := open(t, "e2e-bundle")
	bad := linked(t, d.Bundle)
	for _, file := range []string{"images/node.tar", "manifests/argocd/core-install.yaml"} {
		text, err := os.ReadFile(filepath.Join(bad, file))
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(bad, file)), "what it is a link to stays as it is")
		copy(text[len(text)/2:], rand.Text()) // of the same length, so that it has to be read, and of no earlier run, which the engine remembers
		require.NoError(t, os.WriteFile(filepath.Join(bad, file), text, 0o600))
	}
	d.Bundle = bad
	verified := d.CLI(t.Context(), "install")
	require.NoError(t, verified.Start())
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(processes(t), func(p process) bool {
			return len(p.args) > 3 && p.args[0] == "/slipway" && p.args[1] == "bundle" && p.args[2] == "verify"
		})
	}, callLimit, 10*time.Millisecond, "it verifies the bundle")
	for range 2 { // the second time it does not wait for the end; the engine must not end with it
		require.NoError(t, verified.Process.Signal(os.Interrupt))
		time.Sleep(100 * time.Millisecond)
	}
	_ = verified.Wait()
	require.Equal(t, 7, verified.ProcessState.ExitCode())

	r := finish(t, d.CLI(t.Context(), "install"))
	require.Equal(t, 3, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "images/node.tar")
	require.Contains(t, r.err, "manifests/argocd/core-install.yaml")
	require.NotContains(t, r.err, "infrastructure/", "no step started")
}

// snapshot is what the hook of the last run printed: its first line, and the rest.
func (k *kept) snapshot(t *testing.T) (nonce, objects string) {
	t.Helper()
	_, text, found := strings.Cut(read(t, k.report(t), "hooks/snapshot.txt"), mark+"\n")
	require.True(t, found)
	nonce, objects, found = strings.Cut(text, "\n")
	require.True(t, found)
	return nonce, objects
}

// serial is the one of the Terraform state.
func (k *kept) serial(t *testing.T) string {
	t.Helper()
	text := read(t, k.report(t), "state.yaml")
	serial := regexp.MustCompile(`(?m)^\s*terraformSerial: (\S+)$`).FindStringSubmatch(text)
	require.NotNil(t, serial, text)
	return serial[1]
}

// secrets is the part of a snapshot about Secrets.
func secrets(snapshot string) string {
	var out []string
	for line := range strings.Lines(snapshot) {
		if strings.HasSuffix(strings.TrimSpace(line), "-") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// brokenPlatform is the reference platform with an image that does not exist.
func brokenPlatform(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	examples := filepath.Join(root(t), "examples/platform")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(examples, "1.0.0"))))
	broken := filepath.Join(examples, "broken-image")
	require.NoError(t, filepath.WalkDir(broken, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(broken, path)
		require.NoError(t, err)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return os.WriteFile(filepath.Join(dir, rel), text, 0o644)
	}))
	return dir
}

// configured begins a configuration.
const configured = "apiVersion: slipway.sh/v1\n"

// write puts text into a file of its own.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slipway.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

// until reads lines up to one that holds text, then lets the rest pass.
func until(t *testing.T, r io.Reader, text string) {
	t.Helper()
	if found, printed := shows(r, text); !found {
		t.Fatalf("the output ended without %q:\n%s", text, slipway.Tail(printed))
	}
}

// begin begins a dagger call and returns once it shows a text, at the second time if a race of the engine
// (forgotten) ended the first one.
func (d deployment) begin(t *testing.T, out io.Writer, text, function string, args ...string) *exec.Cmd {
	t.Helper()
	for again := false; ; again = true {
		cmd := d.Module(t.Context(), function, args...)
		cmd.Stdout = out
		errs, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		found, printed := shows(errs, text)
		if found {
			return cmd
		}
		require.Contains(t, printed, forgotten, slipway.Tail(printed))
		require.Contains(t, printed, "error ENG-010")
		require.Error(t, cmd.Wait())
		require.False(t, again, "twice: %s", slipway.Tail(printed))
	}
}

// shows reads the output of a program until it shows a text; if it never does, it returns what it
// showed.
func shows(r io.Reader, text string) (found bool, printed string) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	var seen []string
	for lines.Scan() {
		seen = append(seen, lines.Text())
		if strings.Contains(lines.Text(), text) {
			go func() { _, _ = io.Copy(io.Discard, r) }()
			return true, ""
		}
	}
	return false, strings.Join(seen, "\n")
}
