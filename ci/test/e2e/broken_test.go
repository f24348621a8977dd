package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// brokenUpgrade is release 2.0.0 of the reference platform, of which the last migration fails.
func brokenUpgrade(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(root(t), "examples/platform/2.0.0"))))
	file := filepath.Join(dir, "platform.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	const was = `printf %s "$CONTRACT" |`
	require.Equal(t, 1, strings.Count(string(text), was))
	broken := strings.Replace(string(text), was, `printf "%s; SELECT no_such_column FROM entries" "$CONTRACT" |`, 1)
	require.NoError(t, os.WriteFile(file, []byte(broken), 0o600))
	return dir
}

// TestABrokenUpgrade fails, loses no row on the way back, and is reproduced from its package on
// another deployment, and on another engine.
func TestABrokenUpgrade(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-broken")
	finish(t, d.CLI(t.Context(), "cluster", "--stop"))
	finish(t, d.CLI(t.Context(), "destroy", "--yes", "--ignore-not-found"))
	t.Cleanup(func() {
		_ = finish(t, d.CLI(context.Background(), "cluster", "--stop"))
		_ = finish(t, d.CLI(context.Background(), "destroy", "--yes", "--ignore-not-found"))
	})
	k := &kept{deployment: d, config: write(t, configured+"platform: {release: 1.1.0}\n")}
	k.must(t, "install", "--keep-cluster", "--unpublished")
	k.query(t, "INSERT INTO entries (author, message) VALUES ('Jane', 'before')")

	release := brokenUpgrade(t)
	r := k.cli(t, "upgrade", "--platform", release, "--style", "in-place")
	require.Equal(t, 4, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "error UPG-013: orchestrator/migrate-after: carry out migration author-column of data entries")
	require.Contains(t, r.err, "\nTo reproduce it, also elsewhere:\n  slipway save --run ")
	require.Contains(t, r.err, "\n  slipway reproduce --package run.tar.zst\n")
	file := filepath.Join(t.TempDir(), "run.tar.zst")
	k.must(t, "save", "--out", file, "--platform", release)
	files := unpacked(t, file)
	require.Equal(t, contents(t, release), below(files, "release/"))
	require.Equal(t, contents(t, filepath.Join(root(t), "examples/platform/1.1.0")), below(files, "before/release/"))

	k.must(t, "rollback")
	require.Equal(t, `{"platform":"reference","version":"1.1.0"`+"\n", k.shell(t, atRelease))
	require.Equal(t, "before", k.query(t, "SELECT string_agg(message, ',' ORDER BY id) FROM entries WHERE author = 'Jane'"))
	k.must(t, "destroy", "--yes")

	const same = `(?m)^reproduced: failed with UPG-013 in orchestrator/migrate-after$`
	d.Name = ""
	r = finish(t, d.CLI(t.Context(), "reproduce", "--package", file))
	require.Zero(t, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
	require.Regexp(t, same, r.out)
	require.Contains(t, r.err, "slipway: first an install of release 1.1.0, which the upgrade began from\n")
	require.Regexp(t, `slipway: deployment repro-[0-9a-f]{8} is removed`, r.err)

	second := secondEngine(t)
	there := func(args ...string) result {
		t.Helper()
		cmd := d.CLI(t.Context(), args[0], args[1:]...)
		cmd.Env = append(cmd.Env, "_EXPERIMENTAL_DAGGER_RUNNER_HOST="+second.address)
		return finish(t, cmd)
	}
	r = there("reproduce", "--package", file, "--", "cat", "/slipway/request.json")
	require.Zero(t, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
	require.Regexp(t, same, r.out)
	name := regexp.MustCompile(` as (repro-[0-9a-f]{8}), up to orchestrator/migrate-after`).FindStringSubmatch(r.err)
	require.NotNil(t, name, slipway.Tail(r.err))
	require.Regexp(t, `"stage":"orchestrator","step":"migrate-after".*"deployment":"`+name[1]+`"`, r.out, "the failing step's inputs")
	require.Zero(t, there("destroy", "--name", name[1], "--yes").code)
}
