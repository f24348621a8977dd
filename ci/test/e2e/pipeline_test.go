package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// makes stands in for make in the pipelines: the engine and the bundle are there already, and
// others use the engine.
const makes = `#!/bin/sh
case "$*" in
"engine bundle" | engine-stop) ;;
*) PATH="${PATH#*:}" exec make -C "$CHECKOUT" "$@" ;;
esac
`

// pipeline runs the shell of the example for GitHub Actions that installs and tests, on the
// deployment, as it stands.
func (d deployment) pipeline(t *testing.T) {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, root(t), "examples/ci/github-actions/slipway.yaml")), &workflow))
	require.Greater(t, len(workflow.Jobs["install"].Steps), 4)
	bin, work := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "make"), []byte(makes), 0o755))
	summary := filepath.Join(bin, "summary.md")
	for name, text := range map[string]string{"slipway.yaml": configured + "global: {name: " + d.Name + "}\n", ".env": "BUNDLE=" + d.Bundle + "\nbundleDigest=" + os.Getenv("SLIPWAY_BUNDLE_DIGEST") + "\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(work, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink(filepath.Join(root(t), "examples"), filepath.Join(work, "examples")))
	for _, s := range workflow.Jobs["install"].Steps {
		if s.Run == "" {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", s.Run)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "CHECKOUT="+root(t), "DAGGER_MODULE="+root(t),
			"SLIPWAY_CONFIG=slipway.yaml", "GITHUB_STEP_SUMMARY="+summary)
		r := finish(t, cmd)
		require.Zero(t, r.code, slipway.Tail(r.err))
	}
	text, err := os.ReadFile(summary)
	require.NoError(t, err)
	require.Contains(t, string(text), "install "+d.Name)
	require.Contains(t, string(text), "test "+d.Name)
	require.Regexp(t, "(?m)^`lock sha256:[0-9a-f]{64}`$", string(text))
	for _, name := range []string{"report.html", "junit.xml"} {
		found, err := filepath.Glob(filepath.Join(work, "collected/*", name))
		require.NoError(t, err)
		require.Len(t, found, 2, name)
	}
}
