// Package e2e tests Slipway as its users do: `dagger call …` on a real engine, a
// real Kubernetes and the bundle. `make e2e` runs it; SLIPWAY_E2E=1 tells the
// tests that engine and bundle are there, SLIPWAY_E2E=all that those for which CI has no time
// are wanted as well (`make test-all`).
package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestThisMachine proves that the bundle is that of the lock, and takes the clients out of it.
func TestThisMachine(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "")
	run := func(program string, args ...string) result {
		return finish(t, exec.CommandContext(t.Context(), program, args...))
	}
	own := filepath.Join(d.Bundle, "bin/slipway")

	t.Run("lock verify", func(t *testing.T) {
		r := run(own, "lock", "verify", "--bundle", d.Bundle)
		newer := strings.Contains(r.err, "LCK-004") // Debian's mirror has gone on since the packages were pinned
		if newer {
			require.Equal(t, 3, r.code)
			require.Regexp(t, `image \S+: it has the package \S+ \S+, the lock`, r.err)
			require.NotRegexp(t, `BUN-\d|LCK-00[^4]`, r.err, "all else is that of the lock")
			require.NotContains(t, r.out, "lock sha256:")
		} else {
			require.Zero(t, r.code, r.err)
			line := regexp.MustCompile(`(?m)^lock sha256:[0-9a-f]{64}$`).FindString(r.out)
			require.NotEmpty(t, line, r.out)
			require.Contains(t, d.ok(t, "lock-verify").out, line, "the same by dagger call")
		}

		bad := linked(t, d.Bundle)
		index, err := os.ReadFile(filepath.Join(bad, "bundle.json"))
		require.NoError(t, err)
		for name, text := range map[string]string{
			"manifests/argocd/core-install.yaml": "x",
			"bundle.json":                        strings.Replace(string(index), `"version": "3.22.0"`, `"version": "3.22.1"`, 1),
		} {
			require.NoError(t, os.Remove(filepath.Join(bad, name)), "what it is a link to stays as it is")
			require.NoError(t, os.WriteFile(filepath.Join(bad, name), []byte(text), 0o600))
		}
		r = run(own, "lock", "verify", "--bundle", bad)
		require.Equal(t, 3, r.code, r.err)
		for _, says := range []string{"BUN-007", "BUN-003", "manifests/argocd/core-install.yaml", "BUN-005", "tool helm: the bundle has version 3.22.1, the lock says 3.22.0"} {
			require.Contains(t, r.err, says)
		}
		require.NotContains(t, r.out, "lock sha256:")
		if newer {
			t.Skip("that both machines end with the same line was not tried: make pins")
		}
	})

	t.Run("clients", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "bin")
		r := run(own, "clients", "--out", dir, "--bundle", d.Bundle)
		require.Zero(t, r.code, r.err)
		for name, c := range map[string]struct{ args, says string }{
			"slipway":   {"version", "slipway "},
			"kubectl":   {"version --client", "Client Version: v1.37.2"},
			"helm":      {"version --short", "v3.22.0"},
			"terraform": {"version", "Terraform v1.15.9"},
		} {
			r := run(filepath.Join(dir, name), strings.Fields(c.args)...)
			require.Zero(t, r.code, r.err)
			require.Contains(t, r.out, c.says)
		}
		r = run(filepath.Join(dir, "slipway"), "clients", "--out", dir, "--bundle", d.Bundle)
		require.Zero(t, r.code, r.err)
		require.Equal(t, 4, strings.Count(r.out, "there already"), r.out)

		exported := t.TempDir()
		d.ok(t, "clients", "export", "--path", exported)
		r = run(own, "clients", "--out", exported, "--bundle", d.Bundle)
		require.Zero(t, r.code, slipway.Tail(r.err))
		require.Equal(t, 4, strings.Count(r.out, "there already"), r.out)
	})
}
