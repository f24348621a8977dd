package e2e

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBenchScript installs with the plain shell script that `make bench` compares
// with, once, and removes what it installed: a script that no longer fits the
// platform fails here.
func TestBenchScript(t *testing.T) {
	t.Parallel()
	d := open(t, "")
	cmd := exec.CommandContext(t.Context(), "go", "run", "-C", "..", "./bench",
		"--bundle", d.Bundle, "--only", "script", "--cold", "--rounds", "1", "--verbose")
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	r := finish(t, cmd)
	t.Logf("%s\n%s", r.out, r.err)
	require.Zero(t, r.code)
	require.Regexp(t, `(?m)^\| install\.sh +\| cold +\|`, r.out, "it was measured")
	require.Contains(t, r.err, "installed:")
	for _, app := range append(apps, "root") {
		require.Regexp(t, `(?m)^`+app+` Synced Healthy [0-9a-f]{40} Succeeded$`, r.err)
	}
}
