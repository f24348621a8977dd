package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// dataRelease is release 1.1.0 of the reference platform as 1.2.0, with data and migrations;
// edit changes its platform.yaml.
func dataRelease(t *testing.T, edit ...string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(root(t), "examples/platform/1.1.0"))))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o755))
	copied := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata/data", name))
		require.NoError(t, err)
		return string(text)
	}
	for _, name := range []string{"entries.yaml", "scratch.yaml"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "data", name), []byte(copied(name)), 0o600))
	}
	file := filepath.Join(dir, "platform.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	all := strings.NewReplacer("\nversion: 1.1.0\nupgradableFrom: [1.0.0]\n", "\nversion: 1.2.0\nupgradableFrom: [1.1.0]\n").Replace(string(text)) + copied("platform.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer(edit...).Replace(all)), 0o600))
	return dir
}

// query asks the database.
func (k *kept) query(t *testing.T, sql string) string {
	t.Helper()
	out := k.shell(t, `kubectl exec -n database database-0 -- psql --no-psqlrc -U platform -d guestbook -Atqc "`+sql+`"`)
	return strings.TrimSpace(out)
}

// keepsData begins an upgrade with a backup and migrations, which fails, and goes back from
// there by taking the migrations back: what was written meanwhile stays.
func (k *kept) keepsData(t *testing.T) {
	k.query(t, "INSERT INTO entries (author, message) VALUES ('Jane', 'before')")
	last := k.failsToUpgrade(t, dataRelease(t, noSuchColumn...))
	k.query(t, "INSERT INTO entries (author, message) VALUES ('Jane', 'meanwhile')")
	r := k.must(t, "rollback")
	require.Contains(t, r.out, "\nrolled back to 1.1.0, backup "+last)
	k.requireBack(t, "before,meanwhile")
}

// restoresData does so with a migration that cannot be taken back: the backup takes the
// place of the data once somebody agrees, and what was written meanwhile is in a backup
// of its own. It is agreed to with `dagger call`, by somebody whose home has nothing of what
// the upgrade left in another.
func (k *kept) restoresData(t *testing.T) {
	const undo = `
    undo: [psql, --no-psqlrc, --quiet, --set=ON_ERROR_STOP=1, -c, "SELECT 1"]`
	last := k.failsToUpgrade(t, dataRelease(t, append([]string{undo, ""}, noSuchColumn...)...))
	k.query(t, "INSERT INTO entries (author, message) VALUES ('Jane', 'too late')")
	r := k.cli(t, "rollback")
	require.Equal(t, 2, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "error UPG-015")
	require.Contains(t, r.err, "migration shine cannot be taken back")
	require.Equal(t, "too late", k.query(t, "SELECT message FROM entries WHERE message = 'too late'"), "nothing was changed")
	k.must(t, "cluster", "--stop")
	cmd := k.Module(t.Context(), "rollback", "--yes", "--config", k.config)
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir())
	r = finish(t, cmd)
	k.printed.add(r.out + r.err)
	require.Zero(t, r.code, slipway.Tail(r.err))
	require.Contains(t, r.out, "\nrolled back to 1.1.0, backup "+last)
	k.must(t, "cluster", "--keep-cluster")
	k.requireBack(t, "before,meanwhile")
	saved := k.backups(t)
	require.NotEqual(t, last, saved[len(saved)-1].ID, "the data that was replaced")
}

// noSuchColumn has the last migration fail.
var noSuchColumn = []string{"UPDATE entries SET stars = 5 WHERE author = 'Ada'", "SELECT no_such_column FROM entries"}

// atRelease prints the release that is installed, and the one that an upgrade did not reach.
const atRelease = `kubectl get secret -n slipway-system slipway-release -o 'go-template={{index .data "release.json" | base64decode}}' | grep -o '^{"platform":"reference","version":"[^"]*"\(,"toward":"[^"]*"\)*'`

// backup is one as `slipway backups` shows it.
type backup struct {
	ID, From, To string
	Data         []struct {
		Name, Check string
		Bytes       int
	}
}

func (k *kept) backups(t *testing.T) (all []backup) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(k.must(t, "backups", "--output", "json").out), &all))
	return all
}

// failsToUpgrade begins an upgrade to a release whose last migration fails, and returns the
// backup that it made.
func (k *kept) failsToUpgrade(t *testing.T, bad string) (id string) {
	t.Helper()
	rows := k.query(t, "SELECT count(*) FROM entries") + " rows"
	r := k.cli(t, "upgrade", "--platform", bad)
	require.Equal(t, 4, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "error UPG-013: orchestrator/migrate-after: carry out migration shine of data entries")
	require.Contains(t, r.err, `column "no_such_column" does not exist`)
	require.Regexp(t, `nothing was deleted; to go on: slipway upgrade --resume .*; to go back: slipway rollback `, r.err)
	require.Equal(t, `{"platform":"reference","version":"1.1.0","toward":"1.2.0"`+"\n", k.shell(t, atRelease))
	require.Empty(t, k.shell(t, `kubectl get pods -A -l slipway.sh/data -o name`))
	all := k.backups(t)
	last := all[len(all)-1]
	require.Equal(t, []string{"1.1.0", "1.2.0"}, []string{last.From, last.To})
	require.Len(t, last.Data, 1)
	require.Equal(t, rows, last.Data[0].Check)
	require.Positive(t, last.Data[0].Bytes)
	r = k.cli(t, "install", "--platform", bad)
	require.Equal(t, 2, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "error UPG-002")
	require.Contains(t, r.err, "with the --platform that it was begun with, if any: slipway upgrade --resume; or go back to 1.1.0: slipway rollback")
	return last.ID
}

// requireBack asserts that release 1.1.0 is back, with these rows of Jane's.
func (k *kept) requireBack(t *testing.T, rows string) {
	t.Helper()
	require.Equal(t, `{"platform":"reference","version":"1.1.0"`+"\n", k.shell(t, atRelease))
	require.Equal(t, rows, k.query(t, "SELECT string_agg(message, ',' ORDER BY id) FROM entries WHERE author = 'Jane'"))
	require.Equal(t, "0", k.query(t, "SELECT count(*) FROM information_schema.columns WHERE table_name = 'entries' AND column_name = 'stars'"))
}
