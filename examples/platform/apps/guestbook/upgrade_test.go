package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// migration runs a script of release 2.0.0 as the platform does, in one transaction. set are
// variables of its environment: NAME=value.
func (s server) migration(t *testing.T, name string, set ...string) {
	t.Helper()
	text, err := os.ReadFile("../../2.0.0/data/entries.yaml")
	require.NoError(t, err)
	var pod struct {
		Spec struct {
			Containers []struct {
				Env []struct{ Name, Value string }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &pod))
	script := ""
	for _, e := range pod.Spec.Containers[0].Env {
		if e.Name == name {
			script = e.Value
		}
	}
	require.NotEmpty(t, script, name)
	cmd := s.command(t.Context(), "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction", "--file=-")
	cmd.Env = append(cmd.Env, set...)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", name, out)
}

// columns are those of the entries.
func (s server) columns(t *testing.T) string {
	t.Helper()
	return s.sql(t, "SELECT string_agg(column_name, ' ' ORDER BY column_name) FROM information_schema.columns WHERE table_name = 'entries'")
}

// The states that the tables go through.
const (
	together = "author created id message"
	both     = "author author_id created id message"
	apart    = "author_id created id message"
)

// steps are an upgrade and the way back.
var steps = []struct {
	name    string
	set     []string
	becomes string
}{
	{"EXPAND", nil, both},
	{"CONTRACT", nil, apart},
	{"EXPAND", []string{"BACK=yes"}, both},
	{"UNDO_EXPAND", nil, together},
}

// TestUpgrade takes one server through the releases, each time from the start.
func TestUpgrade(t *testing.T) {
	s := postgres(t)
	for name, test := range map[string]func(*testing.T, server){
		"no row is lost": losesNoRow, "either place of the authors": eitherPlace, "the new Job on old tables": newJobOnOldTables, "migrated and fresh": migratedAndFresh,
	} {
		t.Run(name, func(t *testing.T) {
			s.sql(t, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
			test(t, s)
		})
	}
}

// losesNoRow: neither an upgrade nor the way back does, while somebody writes and the app reads: whoever writes
// knows of the authors' table, or of the column, as long as that is there.
func losesNoRow(t *testing.T, s server) {
	s.seed(t, seedTogether)
	app := s.open(t)
	owner, err := Open(t.Context(), Database{Host: "127.0.0.1", Port: s.port, Name: "postgres", User: "platform", Password: "owner-password"})
	require.NoError(t, err)
	t.Cleanup(owner.Close)

	ctx, stop := context.WithCancel(t.Context())
	var written, reads atomic.Int64
	var failed sync.Map
	var wg sync.WaitGroup
	write := func(kind, query string) {
		for i := 0; ctx.Err() == nil; i++ {
			// Which statements fail depends on the tables; a row counts when it is committed.
			if _, err := owner.pool.Exec(context.WithoutCancel(ctx), query, fmt.Sprintf("%s %d", kind, i%7), fmt.Sprintf("%s message %d", kind, i)); err == nil {
				written.Add(1)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	wg.Go(func() { write("old", `INSERT INTO entries (author, message) VALUES ($1, $2)`) })
	wg.Go(func() {
		write("new", `WITH a AS (INSERT INTO authors (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id)
INSERT INTO entries (author_id, message) SELECT id, $2 FROM a`)
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			list, err := app.List(context.WithoutCancel(ctx))
			if err == nil && len(list) < 3 {
				err = fmt.Errorf("it shows %d entries", len(list))
			}
			if err != nil {
				failed.Store(err.Error(), true)
			}
			reads.Add(1)
			time.Sleep(time.Millisecond)
		}
	})
	more := func() {
		from, read := written.Load(), reads.Load()
		require.Eventually(t, func() bool { return written.Load() > from+20 && reads.Load() > read+20 }, 20*time.Second, 10*time.Millisecond, "somebody writes and reads")
	}
	for range 2 { // and once more
		more()
		for _, step := range steps {
			s.migration(t, step.name, step.set...)
			require.Equal(t, step.becomes, s.columns(t), step.name)
			more()
			s.migration(t, step.name, step.set...)
			require.Equal(t, step.becomes, s.columns(t), "%s again changes nothing", step.name)
		}
	}
	stop()
	wg.Wait()
	failed.Range(func(err, _ any) bool { t.Error("a request failed: ", err); return true })
	require.Equal(t, fmt.Sprint(written.Load()+3), s.sql(t, "SELECT count(*) FROM entries"))
	require.Equal(t, "0", s.sql(t, "SELECT count(*) FROM entries WHERE author NOT IN ('Ada', 'Grace', 'Katherine') AND message NOT LIKE split_part(author, ' ', 1) || ' message %'"), "each by its author")
}

// eitherPlace: who knows only one place of the authors reads what others write in the other,
// while there are both.
func eitherPlace(t *testing.T, s server) {
	s.seed(t, seedTogether)
	s.migration(t, "EXPAND")
	const named = "SELECT string_agg(e.author || '=' || a.name, ' ' ORDER BY e.id) FROM entries e JOIN authors a ON a.id = e.author_id"
	require.Equal(t, "Ada=Ada Grace=Grace Katherine=Katherine", s.sql(t, named))
	s.sql(t, "INSERT INTO entries (author, message) VALUES ('Mary', 'one'), ('Mary', 'two')")
	s.sql(t, "INSERT INTO authors (name) VALUES ('Jean'); INSERT INTO entries (author_id, message) SELECT id, 'three' FROM authors WHERE name = 'Jean'")
	s.sql(t, "UPDATE authors SET name = 'Grace H.' WHERE name = 'Grace'")
	s.sql(t, "UPDATE entries SET author = 'Kay' WHERE author = 'Katherine'")
	s.sql(t, "UPDATE entries SET author_id = (SELECT id FROM authors WHERE name = 'Mary') WHERE message = 'three'")
	require.Equal(t, "Ada=Ada Grace H.=Grace H. Kay=Kay Mary=Mary Mary=Mary Mary=Mary", s.sql(t, named))
	require.Equal(t, "6 entries", s.seed(t, seedApart), "the Job of the new release leaves the tables alone")
	require.Equal(t, both, s.columns(t))
	list, err := s.open(t).List(t.Context())
	require.NoError(t, err, "the reader may read the new table")
	require.Len(t, list, 6)

	s.migration(t, "UNDO_EXPAND")
	require.Equal(t, "Ada Grace H. Kay Mary Mary Mary", s.sql(t, "SELECT string_agg(author, ' ' ORDER BY id) FROM entries"))
	require.Equal(t, "2", s.sql(t, "SELECT count(*) FROM authors a WHERE NOT EXISTS (SELECT FROM entries e WHERE e.author = a.name)"), "authors without an entry have no other place")
	s.migration(t, "EXPAND")
	require.Equal(t, "Ada=Ada Grace H.=Grace H. Kay=Kay Mary=Mary Mary=Mary Mary=Mary", s.sql(t, named))
}

// newJobOnOldTables: it leaves them to the migration.
func newJobOnOldTables(t *testing.T, s server) {
	s.seed(t, seedTogether)
	s.sql(t, "DELETE FROM entries WHERE author = 'Ada'")
	require.Equal(t, "2 entries", s.seed(t, seedApart))
	require.Equal(t, together, s.columns(t))
	list, err := s.open(t).List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
}

// migratedAndFresh: a migrated database is as one that was made with the new release.
func migratedAndFresh(t *testing.T, s server) {
	describe := func() string {
		return s.sql(t, `SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2;
SELECT conrelid::regclass::text, contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2, 3;
SELECT relname, relacl FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1;
SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace;
SELECT e.id, a.name, e.message, e.created FROM entries e JOIN authors a ON a.id = e.author_id ORDER BY 1`)
	}
	s.seed(t, seedApart)
	fresh := describe()
	s.sql(t, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
	s.seed(t, seedTogether)
	s.migration(t, "EXPAND")
	s.seed(t, seedApart)
	s.migration(t, "CONTRACT")
	require.Equal(t, fresh, describe())
}
