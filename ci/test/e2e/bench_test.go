package e2e

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestBenchScript installs the platform of static manifests with the plain shell script that
// `make bench` compares with, twice, and removes what it installed: a script that no longer fits
// the platform fails here. The one of the reference platform costs a minute more than it tells:
// `make bench` itself fails with it.
func TestBenchScript(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "")
	cmd := exec.CommandContext(t.Context(), "go", "run", "-C", "..", "./bench",
		"--bundle", d.Bundle, "--only", "static-script", "--rounds", "1", "--verbose")
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	r := finish(t, cmd)
	require.Zero(t, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
	t.Logf("%s\n%s", r.out, r.err)
	require.Regexp(t, `(?m)^\| install\.sh, static platform +\| cold +\|`, r.out, "it was measured")
	require.Contains(t, r.err, "installed:")
	for _, line := range []string{"StatefulSet postgres 1", "Deployment dex 1", "Deployment console 2", "Job databases 1", "Job create-admin 1", "Job migrate 1"} {
		require.Regexp(t, `(?m)^`+line+`$`, r.err)
	}
}
