package e2e

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// bench measures one cold install of an installer and gives what was printed.
func bench(t *testing.T, name string) result {
	t.Helper()
	d := open(t, "")
	cmd := exec.CommandContext(t.Context(), "go", "run", "-C", "..", "./bench",
		"--bundle", d.Bundle, "--only", name, "--cold", "--rounds", "1", "--verbose")
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	r := finish(t, cmd)
	require.Zero(t, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
	t.Logf("%s\n%s", r.out, r.err)
	return r
}

// TestBenchScript installs with the plain shell script that `make bench` compares
// with, once, and removes what it installed: a script that no longer fits the
// platform fails here.
func TestBenchScript(t *testing.T) {
	t.Parallel()
	r := bench(t, "script")
	require.Regexp(t, `(?m)^\| install\.sh +\| cold +\|`, r.out, "it was measured")
	require.Contains(t, r.err, "installed:")
	for _, app := range append(apps, "root") {
		require.Regexp(t, `(?m)^`+app+` Synced Healthy [0-9a-f]{40} Succeeded$`, r.err)
	}
}

// TestBenchStaticScript does so with the script for the platform of static manifests.
func TestBenchStaticScript(t *testing.T) {
	t.Parallel()
	r := bench(t, "static-script")
	require.Regexp(t, `(?m)^\| install\.sh, static platform +\| cold +\|`, r.out, "it was measured")
	require.Contains(t, r.err, "installed:")
	for _, workload := range []string{"StatefulSet postgres 1", "Deployment dex 1", "Deployment console 2", "Job databases 1", "Job create-admin 1", "Job migrate 1"} {
		require.Regexp(t, `(?m)^`+workload+`$`, r.err)
	}
}
