package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// hooked is a configuration whose hooks write when they ran. The order of the
// file is not that in which they run, but for two on the same place.
const hooked = `
hooks:
  - name: last
    after: workflow
    script: |
      date +%s%N
      echo "$SLIPWAY_HOOK: $SLIPWAY_WORKFLOW $SLIPWAY_STAGE/$SLIPWAY_STEP $SLIPWAY_STATUS"
  - name: after-one
    after: preorchestrator/namespaces
    script: |
      date +%s%N
      echo "$SLIPWAY_HOOK: $SLIPWAY_WORKFLOW $SLIPWAY_STAGE/$SLIPWAY_STEP $SLIPWAY_STATUS"
      kubectl get namespace argocd
      kubectl get configmap -n slipway-system slipway-status -o 'jsonpath={.data.state} {.data.message}'
      test ! -e /slipway/state || { echo "the state volume is here"; exit 1; }
    kubeconfig: true
  - name: after-two
    after: preorchestrator/namespaces
    script: |
      date +%s%N
      echo "$SLIPWAY_HOOK: ${GREETING} ${KUBECONFIG}"
    env: {GREETING: hello}
    kubeconfig: true
  - name: before-step
    before: preorchestrator/namespaces
    script: |
      date +%s%N
      echo "$SLIPWAY_HOOK: $SLIPWAY_STATUS"
  - name: first
    before: workflow
    script: |
      date +%s%N
      echo "$SLIPWAY_HOOK: ${KUBECONFIG:-no cluster yet}"
    kubeconfig: true
`

// TestHooks follows hooks of the configuration on the real engine.
func TestHooks(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-hooks")
	with := func(hooks string) *kept { return &kept{deployment: d, config: write(t, configured+hooks)} }
	plain := with("")
	plain.must(t, "destroy", "--yes", "--ignore-not-found") // whatever an earlier run of the tests left

	t.Run("one that fails fails its step", func(t *testing.T) {
		r := d.call(t, "install", "--config", write(t, configured+`
hooks:
  - {name: gate, before: infrastructure/terraform, script: "echo the gate is shut; exit 3"}
  - {name: tell, after: workflow, always: true, script: 'echo "$SLIPWAY_STATUS $SLIPWAY_ERROR_CODE"'}
  - {name: celebrate, after: workflow, run: ["true"]}
`))
		require.Equal(t, 4, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "HOK-001")
		require.Contains(t, r.err, "run the hook gate before infrastructure/terraform: exit status 3: the gate is shut")
		require.NotContains(t, r.err, "infrastructure/cluster: running", "what needs the step did not start")
		dir := plain.report(t)
		require.Contains(t, read(t, dir, "hooks/gate.txt"), "\nthe gate is shut\n")
		require.Contains(t, read(t, dir, "hooks/tell.txt"), "\nfailed HOK-001\n")
		require.NoFileExists(t, filepath.Join(dir, "hooks/celebrate.txt"))
	})

	t.Run("one that takes too long is ended, and what it printed is kept", func(t *testing.T) {
		k := with(`
hooks:
  - {name: slow, before: workflow, script: "echo waiting for Godot; sleep 600", timeout: 2s}
`)
		r := k.cli(t, "install")
		require.Equal(t, 5, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "HOK-001")
		require.Contains(t, r.err, "it did not end within 2s: waiting for Godot")
		require.NotContains(t, r.err, "infrastructure/preflight: running", "no step started")
		require.Contains(t, read(t, k.report(t), "hooks/slow.txt"), "\nwaiting for Godot\n")
	})

	t.Run("one on a step that does not exist is an error", func(t *testing.T) {
		r := with("hooks:\n  - {name: a, before: orchestrator/sinc, run: [x]}\n").cli(t, "install")
		require.Equal(t, 2, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, `line 3: hooks[0].before: got "orchestrator/sinc"`)
		require.Contains(t, r.err, "orchestrator/sync")
		require.NotContains(t, r.err, "infrastructure/preflight: running", "no step started")
	})

	t.Run("configuring has them too", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "slipway.yaml")
		before := configured + `global: {name: old, scale: 50}
hooks:
  - {name: old, before: workflow, workflows: [configure], script: 'grep "name: old" "$SLIPWAY_CONFIG_FILE"; test ! -e /slipway/state; test -z "${KUBECONFIG:-}"; ! test -e /tmp/shut'}
  - {name: tell, after: workflow, workflows: [configure], always: true, script: 'grep "name:" "$SLIPWAY_CONFIG_FILE" | head -1; echo "$SLIPWAY_WORKFLOW $SLIPWAY_STATUS"; exit 3'}
`
		configure := func(args ...string) result {
			d := d
			d.Name = ""
			return finish(t, d.CLI(t.Context(), "configure", append([]string{"--out", file}, args...)...))
		}
		require.NoError(t, os.WriteFile(file, []byte(before), 0o600))
		r := configure("--set", "global.name=new")
		require.Equal(t, 4, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "HOK-001")
		require.Contains(t, r.err, "hooks/old: succeeded")
		require.Regexp(t, `name: new.*\n.*configure succeeded`, r.err)
		require.Contains(t, r.err, "the configuration that was written stays")
		require.Contains(t, read(t, dir, "slipway.yaml"), "name: new,")

		shut := strings.ReplaceAll(before, "! test -e /tmp/shut", "echo the gate is shut; exit 5")
		require.NoError(t, os.WriteFile(file, []byte(shut), 0o600))
		r = configure("--set", "global.name=new")
		require.Equal(t, 4, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "the gate is shut")
		require.Contains(t, r.err, "nothing was asked or written")
		require.Contains(t, r.err, "configure failed", "the hook that runs always")
		require.Equal(t, shut, read(t, dir, "slipway.yaml"))
	})

	t.Run("a secret is handed to the module, and is blanked out", func(t *testing.T) {
		config := write(t, configured+`
hooks:
  - {name: login, before: workflow, script: 'printf %s "$TOKEN" | base64; echo "token $TOKEN"; exit 3', secrets: {TOKEN: "env:SLIPWAY_E2E_TOKEN"}}
`)
		r := d.call(t, "install", "--config", config)
		require.Equal(t, 2, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "CFG-007")

		const token = "correct-horse-battery-staple"
		handed := d
		handed.Flags = []string{"--secrets", "file:" + write(t, "SLIPWAY_E2E_TOKEN="+token+"\n")}
		r = handed.call(t, "install", "--config", config)
		require.Equal(t, 4, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "exit status 3: token ***")
		require.NotContains(t, r.out+r.err, token)
		cmd := d.CLI(t.Context(), "install", "--verbose", "--config", config)
		cmd.Env = append(cmd.Env, "SLIPWAY_E2E_TOKEN="+token)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, 4, cmd.ProcessState.ExitCode(), slipway.Tail(string(out)))
		require.Contains(t, string(out), "exit status 3: token ***")
		for _, form := range forms(token) {
			require.NotContains(t, string(out), form, "on the screen")
		}
		require.Contains(t, read(t, plain.report(t), "hooks/login.txt"), "\n***\ntoken ***\n", "in base64, too")
	})

	t.Run("they run in order", func(t *testing.T) {
		k := with(hooked)
		r := k.must(t, "install", "--until", "preorchestrator/namespaces")
		dir := k.report(t)
		var when []int
		for _, c := range []struct{ hook, says string }{
			{"first", "first: no cluster yet"},
			{"before-step", "before-step: pending"},
			{"after-one", "after-one: install preorchestrator/namespaces succeeded"},
			{"after-two", "after-two: hello /slipway/kubeconfig"},
			{"last", "last: install / succeeded"},
		} {
			require.Regexp(t, `(?m)^\s*hooks/`+c.hook+`\s+succeeded\s`, r.out)
			log := read(t, dir, "hooks/"+c.hook+".txt")
			require.Contains(t, log, c.says)
			at := regexp.MustCompile(`(?m)^\d{19}$`).FindString(log)
			require.NotEmpty(t, at, log)
			n, err := strconv.Atoi(at)
			require.NoError(t, err)
			when = append(when, n)
		}
		require.True(t, slices.IsSorted(when), "%v", when)
		require.Regexp(t, `(?m)^argocd\s+Active`, read(t, dir, "hooks/after-one.txt"))
		require.Contains(t, read(t, dir, "hooks/after-one.txt"), "InProgress installing reference 1.0.0")
	})

	plain.must(t, "destroy", "--yes")
}

// read is the text of a file below dir.
func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}
