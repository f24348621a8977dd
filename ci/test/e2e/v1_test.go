package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// firstVersion is the last commit whose reference platform is written in slipway/v1.
const firstVersion = "e417f051b8c469661f6c01ac504e24011d395ff7"

// TestAReleaseOfTheFirstVersion is installed as it was written, and then as it is now: with the
// same apps, and the secrets that it had.
func TestAReleaseOfTheFirstVersion(t *testing.T) {
	takesLong(t)
	inTurn(t)
	const release = "examples/platform/1.0.0"
	dir := t.TempDir()
	files := filepath.Join(dir, "release.tar")
	for _, args := range [][]string{
		{"git", "-C", root(t), "archive", "--output", files, firstVersion, release},
		{"tar", "-xf", files, "-C", dir},
	} {
		out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	written := filepath.Join(dir, release)
	require.Contains(t, read(t, written, "platform.yaml"), "\napiVersion: slipway/v1\n")

	d := open(t, "e2e-v1")
	k := &kept{deployment: d, config: write(t, configured+"local: {apiPort: 9643}\n")}
	finish(t, d.CLI(t.Context(), "cluster", "--stop")) // whatever an earlier run of the tests left
	k.must(t, "destroy", "--yes", "--ignore-not-found")
	t.Cleanup(func() {
		_ = finish(t, d.CLI(context.Background(), "cluster", "--stop"))
		_ = finish(t, d.CLI(context.Background(), "destroy", "--yes", "--ignore-not-found"))
	})

	requireInstalled(t, k.must(t, "install", "--keep-cluster", "--platform", written))
	first := k.secrets(t, k.shell(t, listSecrets))
	require.Contains(t, k.must(t, "install", "--platform", written).out, "nothing changed", "of a second install")

	requireInstalled(t, k.must(t, "install"))
	now := k.secrets(t, k.shell(t, listSecrets))
	for name, values := range first {
		if !strings.HasPrefix(name, "argocd/") { // which reads the repository with another account now
			require.Equal(t, values, now[name], name)
		}
	}
	k.must(t, "destroy", "--yes")
}
