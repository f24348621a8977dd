package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestModuleOfARelease calls the Dagger module of a tag, from an empty folder: the commit has
// the lock file of its images, which are in a registry.
func TestModuleOfARelease(t *testing.T) {
	takesLong(t)
	inTurn(t)
	r := startRegistry(t)
	d := open(t, "e2e-module")
	work := filepath.Join(t.TempDir(), "slipway")
	git := func(dir string, args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	git(root(t), "clone", "--quiet", root(t), work)
	r.push(t, d.Bundle, filepath.Join(work, "ci", "slipway.lock.json"))
	git(work, "add", "--all")
	git(work, "commit", "--quiet", "--message", "with the lock of what was pushed")
	git(work, "tag", "v9.9.9")
	module := serveGit(t, work, "80") + "@v9.9.9" // Dagger v0.20.8 loses another port
	config := write(t, configured+"local: {registryMirror: \"http://"+r.bridge+"/team/slipway\"}\n")
	call := func(t *testing.T, function string, args ...string) result {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), callLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, "dagger", append([]string{"call", "--progress", "plain", "--mod", module, function, "--name", d.Name, "--config", config}, args...)...)
		cmd.Dir = t.TempDir()
		return finish(t, cmd)
	}
	t.Cleanup(func() { _ = finish(t, d.CLI(context.Background(), "destroy", "--yes", "--ignore-not-found")) })
	for _, step := range [][]string{{"install", "--until", "infrastructure/storage"}, {"status"}, {"destroy"}} {
		r := call(t, step[0], step[1:]...)
		require.Zero(t, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
	}
}
