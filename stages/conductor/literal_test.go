package conductor

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// requireToldInSecret asserts that the engine was told canary, and only as a secret: all else
// that it is asked, and every string that it answers with, is in its telemetry.
func (e *engine) requireToldInSecret(t *testing.T, canary string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	told := false
	for _, query := range e.asked {
		if strings.Contains(query, canary) {
			told = true
			require.Regexp(t, `^query *\{setSecret\(`, query)
		}
		require.NotContains(t, query, "{contents")
	}
	require.True(t, told, canary)
}

// TestWhatARunKnowsIsTheEnginesInSecretOnly: requests, the plan, the configuration, the
// output of hooks, and results.
func TestWhatARunKnowsIsTheEnginesInSecretOnly(t *testing.T) {
	const kubeconfig = "users: [{name: a, user: {client-key-data: c4nary-key}}]\n"
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	c, e := conducted(t, map[string]any{
		`"step","infrastructure/preflight"`: `{"status":"succeeded","output":{}}`,
		`"state","open"`:                    `{"known":9}`,
		`"step","infrastructure/cluster"`:   `{"status":"succeeded","output":{}}`,
		`"slipway","dry-run"`:               `{}`,
		`"state","kubeconfig"`:              secretText(t, kubeconfig),
		"combinedOutput":                    "c4nary-output\n",
	})
	c.opts.Images.Manifests, c.opts.ReleaseDir = c.opts.Client.Directory(), c.opts.Client.Directory()
	c.opts.Config.Platform.Components = map[string]config.Component{"web": {Values: []byte(`{"password":"c4nary-value"}`)}}
	c.opts.Config.Hooks = []config.Hook{{
		Name: "tell", After: "infrastructure/cluster", Script: "true", Workflows: []string{config.Install}, Kubeconfig: true,
		Env: map[string]string{"GREETING": "hello", "DB_PASSWORD": "c4nary-env", "PIN_TOKEN": "123"},
	}}
	c.opts.Config.Hooks[0].SetDefaults()
	_, err := c.Conduct(t.Context(), stages.Workflow{Name: config.Install, Wire: func(g *stages.Graph) error {
		s := stages.Add(g, contract.PreflightStep(), func() contract.PreflightInput {
			return contract.PreflightInput{TLS: &contract.UserTLS{CA: "c4nary-input"}}
		})
		verified := g.Action(contract.CheckEarlierSpec().Key, s)
		stages.Add(g, contract.ClusterStep(), func() contract.ClusterInput { return contract.ClusterInput{} }, verified)
		return nil
	}})
	require.NoError(t, err)
	for _, canary := range []string{"c4nary-input", "c4nary-value", "c4nary-env", "c4nary-output", "c4nary-key"} {
		e.requireToldInSecret(t, canary)
	}
	require.Contains(t, e.all(), `"slipway","dry-run"`)
	require.Regexp(t, variable("GREETING", "hello"), e.all(), "the engine would blank it out in what the hook prints")
	require.Regexp(t, variable("PIN_TOKEN", "123"), e.all(), "and this wherever a number has it")
	left, err := filepath.Glob(filepath.Join(tmp, "*"))
	require.NoError(t, err)
	require.Empty(t, left, "results are not left on this machine")
}

// TestAResultIsForItsUserOnly while it is on this machine.
func TestAResultIsForItsUserOnly(t *testing.T) {
	c, e := conducted(t, map[string]any{`"state","kubeconfig"`: secretText(t, "c4nary"), `"state","show"`: `{"cluster":true}`})
	var mode os.FileMode
	e.exports = func(path string) {
		info, err := os.Stat(filepath.Dir(path))
		require.NoError(t, err)
		mode = info.Mode().Perm()
	}
	text, err := c.Kubeconfig(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, "c4nary", text)
	require.Equal(t, os.FileMode(0o700), mode)
}

// TestTheErrorThatAHookGetsHoldsNoSecret: it is a variable.
func TestTheErrorThatAHookGetsHoldsNoSecret(t *testing.T) {
	r := &hookRunner{}
	env := r.env(config.Hook{}, pipeline.Result{Err: errors.New("dial postgres://app:c4nary@db: refused")})
	require.Equal(t, "dial postgres://***@db: refused", env["SLIPWAY_ERROR"])
}

// TestARequestOfAnySizeReachesTheStep: a secret of the engine is short.
func TestARequestOfAnySizeReachesTheStep(t *testing.T) {
	steps, e := stepRunner(t, map[string]any{"{export": `{"status":"succeeded","output":{}}`})
	big := contract.PreflightInput{TLS: &contract.UserTLS{CA: strings.Repeat("x", 1<<20)}}
	var out contract.Preflight
	_, err := steps.Run(t.Context(), contract.PreflightStep().Spec, big, &out)
	require.NoError(t, err)
	var parts int
	for _, query := range e.asked {
		require.Less(t, len(query), 500<<10)
		if strings.Contains(query, "setSecret(") {
			parts++
		}
	}
	text, err := json.Marshal(big)
	require.NoError(t, err)
	require.Greater(t, parts, len(text)/128000)
}
