package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
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
