package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// pods prints what a cluster that kept running has left alone: the container of each pod
// that runs, and when it was started.
const pods = `{range .items[*]}{.metadata.name}{"\t"}{.status.containerStatuses[0].state.running.startedAt}{"\n"}{end}`

// TestBackgroundCluster follows an install whose cluster keeps running between runs.
func TestBackgroundCluster(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-background")
	run := func(t *testing.T, command string, args ...string) result {
		t.Helper()
		r := finish(t, d.CLI(t.Context(), command, args...))
		t.Logf("slipway %s %s (%s): exit %d after %s", command, strings.Join(args, " "), d.Name, r.code, r.took.Round(100*time.Millisecond))
		return r
	}
	ok := func(t *testing.T, command string, args ...string) result {
		t.Helper()
		r := run(t, command, args...)
		require.Zero(t, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
		return r
	}
	ok(t, "cluster", "--stop") // whatever an earlier run of the tests left
	ok(t, "destroy", "--yes", "--ignore-not-found")
	t.Cleanup(func() { _ = finish(t, d.CLI(context.Background(), "cluster", "--stop")) })

	const administrators = "the administrator's own password" // as long as one that is generated
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte(administrators+"\n"), 0o600))
	given := configured + fmt.Sprintf("platform: {secrets: {adminPassword: %q}}\n", "file:"+password)
	gate := write(t, given+"hooks: [{name: gate, before: postorchestrator/access, script: 'exit 3'}]\n")
	failed := run(t, "install", "--keep-cluster", "--config", gate)
	require.Equal(t, 4, failed.code, slipway.Tail(failed.err))
	require.Contains(t, failed.err, "run the hook gate before postorchestrator/access")
	require.Contains(t, failed.out, "the cluster of deployment e2e-background is ready: https://127.0.0.1:6443")
	require.Contains(t, failed.out, "It runs in the background")
	requireNotPacked := func(t *testing.T, of []string, secrets ...string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "run.tar.zst")
		ok(t, "save", append(of, "--out", file)...)
		for _, secret := range secrets {
			requireNone(t, map[string][]string{"of the test": forms(secret)}, unpacked(t, file))
		}
	}
	requireNotPacked(t, []string{"--config", gate}, administrators)

	access := filepath.Join(t.TempDir(), "kubeconfig")
	ok(t, "kubeconfig", "--out", access)
	kubectl := func(t *testing.T, args ...string) string {
		t.Helper()
		r := finish(t, exec.CommandContext(t.Context(), filepath.Join(d.Bundle, "bin", "kubectl"), append([]string{"--kubeconfig", access}, args...)...))
		require.Zero(t, r.code, r.err)
		return r.out
	}
	running := func(t *testing.T) string {
		t.Helper()
		return kubectl(t, "get", "pods", "-A", "--field-selector", "status.phase=Running", "-o", "jsonpath="+pods)
	}
	before := running(t)
	require.Contains(t, before, "gitea")
	others := &kept{deployment: d, config: write(t, configured), kubeconfig: access}

	state := func(t *testing.T) (inCluster, shown string) {
		t.Helper()
		var s status
		require.NoError(t, json.Unmarshal([]byte(ok(t, "status", "--output", "json").out), &s))
		return kubectl(t, "get", "configmap", "-n", "slipway-system", "slipway-status", "-o", "jsonpath={.data.state}"), s.State
	}
	t.Run("its status", func(t *testing.T) {
		inCluster, shown := state(t)
		require.Equal(t, []string{"Failed", "Failed"}, []string{inCluster, shown})
	})

	t.Run("an install joins it and continues", func(t *testing.T) {
		look := write(t, given+"hooks: [{name: look, before: postorchestrator/access, kubeconfig: true, script: \"kubectl get configmap -n slipway-system slipway-status -o 'jsonpath={.data.state}'\"}]\n")
		r := ok(t, "install", "--config", look)
		report := filepath.Join(t.TempDir(), "report")
		ok(t, "report", "--out", report)
		require.Contains(t, read(t, report, "hooks/look.txt"), "\nInProgress", "it has not said Failed any more")
		require.Regexp(t, `orchestrator/sync\s+reused`, r.out)
		require.Regexp(t, `postorchestrator/access\s+succeeded`, r.out)
		require.Regexp(t, `\d+ earlier results hold`, r.err, "what the engine's log says of a step is shown")
		require.Equal(t, before, running(t), "a pod was started anew")
		require.Contains(t, r.out, "The administrator of the git server is gitea-admin", "the release's guidance")
		inCluster, shown := state(t)
		require.Equal(t, []string{"Success", "Success"}, []string{inCluster, shown})
		others.requireAlike(t, "slipway.local/")
		t.Logf("resume after a failure in the last stage: %.1f %% of the install that failed there", 100*r.took.Seconds()/failed.took.Seconds())
	})

	t.Run("the administrator's password is the one that was given", func(t *testing.T) {
		ok(t, "install") // without it: what was given once stays
		r := ok(t, "toolchain", "--", "sh", "-ceu", `password=$(kubectl get secret -n gitea gitea-admin -o 'jsonpath={.data.password}' | base64 -d)
echo "$password"
curl -fsSk -u "gitea-admin:$password" https://cluster/api/v1/user`)
		require.Regexp(t, "^"+administrators+`\n.*"login":"gitea-admin"`, r.out)
	})

	t.Run("a later wave waited for the one before it", func(t *testing.T) { wavesWait(t, kubectl) })

	t.Run("what was changed by hand is undone", func(t *testing.T) {
		undoesDrift(t, d.Name, kubectl, func(t *testing.T) result { return ok(t, "install") })
	})

	t.Run("a namespace that is being deleted is made again", func(t *testing.T) {
		remakesANamespace(t, kubectl, func(t *testing.T) result { return ok(t, "install") })
	})

	toolchain := func(t *testing.T, script string, env ...string) string {
		t.Helper()
		args := append(append([]string{"--", "env"}, env...), "sh", "-ceu", script)
		r := finish(t, d.CLI(t.Context(), "toolchain", args...)) // not logged: a password is among them
		require.Zero(t, r.code, r.err)
		return r.out
	}
	t.Run("a plan says what an install would do, and an approved one is what it does", func(t *testing.T) {
		plans(t, kubectl, run, func(t *testing.T) {
			t.Helper()
			address := kubectl(t, "get", "service", "-n", "gitea", "gitea", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
			password := func(secret string) string {
				return decoded(t, kubectl(t, "get", "secret", "-n", "gitea", secret, "-o", "jsonpath={.data.password}"))
			}
			toolchain(t, pushes, "READER="+password("gitea-reader"), "WRITER="+password("gitea-slipway"), "ADDRESS="+address, "EVIL=# a comment")
		})
	})

	t.Run("a push gives its author no right", func(t *testing.T) {
		refusesEvilPushes(t, kubectl, toolchain, func(t *testing.T) result { return ok(t, "install") })
	})

	t.Run("a command in the toolchain prints and ends as it does elsewhere", func(t *testing.T) {
		r := run(t, "toolchain", "--", "sh", "-c", "echo out; echo complaint >&2; exit 42")
		require.Equal(t, 42, r.code)
		require.Equal(t, "out\n", r.out)
		require.Contains(t, r.err, "complaint\n")
		require.NotContains(t, r.err, "RUN-003")
	})

	t.Run("a part of the steps", func(t *testing.T) {
		r := ok(t, "install", "--until", "orchestrator")
		require.Regexp(t, `(?m)^\s*preorchestrator/gitea\s+reused`, r.out)
		require.Regexp(t, `(?m)^\s*postorchestrator/access\s+unselected`, r.out)
	})

	t.Run("a changed platform is seen", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "platform")
		require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(root(t), "examples/platform/1.0.0"))))
		same := ok(t, "install", "--platform", dir)
		require.Regexp(t, `orchestrator/publish\s+reused`, same.out)
		require.Regexp(t, `[1-9]\d+ earlier results hold`, same.err)
		seed := filepath.Join(dir, "gitops/apps/database/files/seed.sql")
		text, err := os.ReadFile(seed)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(seed, append(text, "-- changed\n"...), 0o600))
		require.Regexp(t, `orchestrator/publish\s+succeeded`, ok(t, "install", "--platform", dir).out)
	})

	t.Run("what the configuration says of mail and of an app reaches the cluster", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "platform")
		require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(root(t), "examples/platform/1.0.0"))))
		release := filepath.Join(dir, "platform.yaml")
		text, err := os.ReadFile(release)
		require.NoError(t, err)
		const mail = "\nsecrets:\n  - name: mail\n    namespace: platform\n    keys: [{key: password, generate: given, from: smtp.password}]\n"
		require.NoError(t, os.WriteFile(release, []byte(strings.Replace(string(text), "\nsecrets:\n", mail, 1)), 0o600))
		config := write(t, configured+`smtp: {host: mail.example.com, from: me@example.com, username: me, password: "env:E2E_SMTP"}
platform: {components: {guestbook: {values: {profiles: {"50": {replicas: 2}}}}}}
`)
		install := func(password string) result {
			cmd := d.CLI(t.Context(), "install", "--platform", dir, "--config", config)
			cmd.Env = append(cmd.Env, "E2E_SMTP="+password)
			r := finish(t, cmd)
			t.Logf("slipway install (%s): exit %d after %s", d.Name, r.code, r.took.Round(100*time.Millisecond))
			require.NotContains(t, r.out+r.err, password)
			return r
		}
		missing := run(t, "install", "--platform", dir, "--config", config)
		require.Equal(t, 2, missing.code, slipway.Tail(missing.err))
		require.Contains(t, missing.err, "CFG-007")
		for _, password := range []string{"first-canary", "second-canary"} {
			r := install(password)
			require.Zero(t, r.code, slipway.Tail(r.err))
			require.Regexp(t, `preorchestrator/secrets\s+succeeded`, r.out)
			got, err := base64.StdEncoding.DecodeString(kubectl(t, "get", "secret", "-n", "platform", "mail", "-o", "jsonpath={.data.password}"))
			require.NoError(t, err)
			require.Equal(t, password, string(got))
		}
		require.Equal(t, "2", kubectl(t, "get", "deployment", "-n", "guestbook", "guestbook", "-o", "jsonpath={.spec.replicas}"))
		require.Regexp(t, `preorchestrator/secrets\s+reused`, install("second-canary").out)
		requireNotPacked(t, []string{"--platform", dir, "--config", config}, "first-canary", "second-canary")
	})

	t.Run("one with other ports is refused", func(t *testing.T) {
		r := run(t, "install", "--config", write(t, configured+"local: {ports: [18081]}\n"))
		require.Equal(t, 3, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "CTR-007")
		require.Contains(t, r.err, "slipway cluster --stop (with the same flags: --config ")
	})

	slow := write(t, configured+"hooks: [{name: slow, before: postorchestrator/access, script: 'sleep 600'}]\n")
	t.Run("one run at a time works on it, and a killed one takes it along", func(t *testing.T) {
		cmd := d.CLI(t.Context(), "install", "--config", slow)
		errs, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		until(t, errs, "postorchestrator/access: running")
		inCluster, shown := state(t)
		require.Equal(t, []string{"InProgress", "InProgress"}, []string{inCluster, shown}, "while it works")
		other := run(t, "install", "--lock-timeout", "1s")
		require.Equal(t, 6, other.code, slipway.Tail(other.err))
		require.Contains(t, other.err, "LOK-001")
		stop := run(t, "cluster", "--stop")
		require.Equal(t, 6, stop.code, slipway.Tail(stop.err))
		require.Contains(t, stop.err, "DEP-004")

		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		require.Eventually(t, func() bool {
			return strings.Contains(run(t, "cluster", "--stop").out, "does not run")
		}, time.Minute, time.Second)
	})

	t.Run("a background process that was killed is not missed", func(t *testing.T) {
		r := ok(t, "cluster", "--keep-cluster")
		pid := regexp.MustCompile(`process (\d+)`).FindStringSubmatch(r.out)
		require.NotNil(t, pid, r.out)
		require.NoError(t, exec.CommandContext(t.Context(), "kill", "-KILL", pid[1]).Run())
		require.Contains(t, ok(t, "cluster", "--keep-cluster").out, "It runs in the background")
	})

	t.Run("one whose node has died ends, and the next command starts the node again", func(t *testing.T) {
		found := regexp.MustCompile(`process (\d+)`).FindStringSubmatch(ok(t, "cluster", "--keep-cluster").out)
		require.NotNil(t, found)
		lender, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		killed := 0
		for _, p := range processes(t) {
			if filepath.Base(p.args[0]) == "slipway-node" && slices.Contains(p.args, d.Name) {
				require.NoError(t, syscall.Kill(p.pid, syscall.SIGKILL))
				killed++
			}
		}
		require.Positive(t, killed)
		require.Eventually(t, func() bool { return syscall.Kill(lender, 0) != nil }, 40*time.Second, 500*time.Millisecond) // half a minute, and its end
		require.Contains(t, ok(t, "install").out, "Synced")
		ok(t, "cluster", "--keep-cluster")
	})

	t.Run("an endpoint that answers late is waited for", func(t *testing.T) { waitsForAnAnswer(t, others) })

	t.Run("a git server that is not part of the platform", func(t *testing.T) { appsFromElsewhere(t, others) })

	t.Run("a name under which nothing was installed", func(t *testing.T) {
		never := d
		never.Name = "e2e-never"
		r := finish(t, never.CLI(t.Context(), "destroy", "--yes"))
		require.Equal(t, 2, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "error DEP-001: remove deployment e2e-never: nothing was ever installed under that name")
		r = finish(t, never.CLI(t.Context(), "destroy", "--yes", "--ignore-not-found"))
		require.Zero(t, r.code, slipway.Tail(r.err))
		require.Equal(t, "there is no deployment e2e-never, and never was: nothing was removed\n", r.out)
		require.Equal(t, 2, finish(t, never.CLI(t.Context(), "destroy", "--yes")).code, "that was no run")
		r = finish(t, never.CLI(t.Context(), "status"))
		require.Equal(t, 2, r.code, slipway.Tail(r.err))
		require.Equal(t, "e2e-never: NotStarted\n", r.out)
	})

	t.Run("destroy ends it", func(t *testing.T) {
		r := ok(t, "destroy", "--yes")
		require.Contains(t, r.err, "nothing is left")
		ok(t, "destroy", "--yes") // again: it is known
		require.Contains(t, ok(t, "cluster", "--stop").out, "does not run")
		require.Equal(t, 2, run(t, "cluster", "--keep-cluster").code, "there is none any more")
		require.Contains(t, ok(t, "cluster", "--stop").out, "does not run", "the process in the background ended")
	})
}
