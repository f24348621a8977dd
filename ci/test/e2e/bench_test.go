package e2e

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestBenchScript installs the platforms of static manifests and of addons with the plain shell
// script that `make bench` compares with, once, and removes what it installed: a script that
// no longer fits a platform fails here. The one of the reference platform costs a minute
// more than it tells: `make bench` itself fails with it.
func TestBenchScript(t *testing.T) {
	takesLong(t)
	inTurn(t)
	t.Run("static platform", func(t *testing.T) {
		requireScript(t, "static-script", "static platform",
			"StatefulSet postgres 1", "Deployment dex 1", "Deployment console 2", "Job databases 1", "Job create-admin 1", "Job migrate 1")
	})
	t.Run("addons platform", func(t *testing.T) {
		var lines []string
		for _, app := range []string{"argocd", "external-secrets", "cert-manager-bench-addons-script", "dex-bench-addons-script",
			"portal-bench-addons-script", "routes-bench-addons-script", "traefik-bench-addons-script", "workflows-bench-addons-script"} {
			lines = append(lines, app+" Synced Healthy [0-9a-f]{40} Succeeded")
		}
		requireScript(t, "addons-script", "addons platform", lines...)
	})
}

// requireScript has a script install a platform, and say at the end what is there: lines,
// which are regular expressions.
func requireScript(t *testing.T, name, platform string, lines ...string) {
	t.Helper()
	d := open(t, "")
	cmd := exec.CommandContext(t.Context(), "go", "run", "-C", "..", "./bench",
		"--bundle", d.Bundle, "--only", name, "--cold", "--rounds", "1", "--verbose")
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	r := finish(t, cmd)
	require.Zero(t, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
	t.Logf("%s\n%s", r.out, r.err)
	require.Regexp(t, `(?m)^\| install\.sh, `+platform+` +\| cold +\|`, r.out, "it was measured")
	require.Contains(t, r.err, "installed:")
	for _, line := range lines {
		require.Regexp(t, `(?m)^`+line+`$`, r.err)
	}
}
