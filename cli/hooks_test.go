package cli

import (
	"os"
	"path/filepath"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/conductor"
)

func TestTheExampleConfigurationsAreValid(t *testing.T) {
	for _, file := range []string{"local.yaml", "hooks.yaml"} {
		code, out, errs := slipway("validate", "--config", filepath.Join("../examples/config", file))
		require.Zero(t, code, errs)
		require.Contains(t, out, "valid: deployment ")
		require.NotContains(t, errs, "looks like a secret")
	}
}

func TestAHookOnAStepThatDoesNotExistIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slipway.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`apiVersion: slipway.sh/v1
hooks:
  - {name: a, before: orchestrator/sinc, run: [x]}
  - {name: b, after: orchestrator/sync, workflows: [destroy], run: [x]}
  - {name: c, after: infrastructure/node-remove, run: [x]}
global: {scale: 7}
`), 0o644))
	for _, command := range [][]string{{"validate"}, {"install"}, {"destroy", "--yes"}} {
		code, _, errs := slipway(append(command, "--config", file)...)
		require.Equal(t, 2, code, errs)
		require.Contains(t, errs, "CFG-001")
		require.Contains(t, errs, "3 problems")
		require.Regexp(t, `line 3: hooks\[0\]\.before: got "orchestrator/sinc", want workflow, "\*" for each step, a stage, or a step of install: infrastructure/preflight, .*orchestrator/sync.*; of upgrade: .*; of rollback: .*; of destroy: infrastructure/node-remove`, errs)
		require.Contains(t, errs, `line 4: hooks[1].after: got "orchestrator/sync", which is no step and no stage of destroy`)
		require.Contains(t, errs, "line 6: global.scale")
	}
}

// Who lacks a secret of a step is told of those of the hooks, too: they come from the same
// place.
func TestSecretsThatAreMissingAreReportedTogether(t *testing.T) {
	cfg := config.Default()
	cfg.SMTP.Password = "env:SLIPWAY_TEST_NO_SMTP"
	hook := func(name, variable string) config.Hook {
		return config.Hook{Name: name, Before: "workflow", Workflows: []string{config.Install}, Secrets: map[string]config.SecretRef{"TOKEN": config.SecretRef("env:" + variable)}}
	}
	cfg.Hooks = []config.Hook{hook("login", "SLIPWAY_TEST_NO_TOKEN"), hook("other", "SLIPWAY_TEST_OTHER")}
	cfg.Hooks[1].Workflows = []string{config.Destroy}
	finder := &secrets.Finder{}
	c := &conductor.Options{Config: cfg, Secret: func(ref config.SecretRef) (*dagger.Secret, error) { return finder.Find(t.Context(), ref) }}
	from := deployment.Inputs{Secrets: finder, Workflow: config.Install}
	err := (&installOptions{}).findSecrets(t.Context(), c, from)
	require.EqualError(t, err, "find smtp.password: the environment variable SLIPWAY_TEST_NO_SMTP is not set or is empty\n"+
		"find the secret TOKEN of the hook login: the environment variable SLIPWAY_TEST_NO_TOKEN is not set or is empty")
	require.Equal(t, fault.Usage, fault.ClassOf(err))
}
