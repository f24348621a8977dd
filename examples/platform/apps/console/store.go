package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/slipway-sh/slipway/examples/platform/apps/signin"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationFiles are the names of the migrations, in their order. Their number is the version of
// the schema that this program works on.
func migrationFiles() []string {
	files, _ := fs.Glob(migrations, "migrations/*.sql") // it fails for malformed patterns only
	return files
}

// migrate brings the database's schema to what this program works on, all of it or nothing, and
// returns how many migrations it took.
func migrate(ctx context.Context, pool *pgxpool.Pool) (applied int, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, statement := range []string{
			`SELECT pg_advisory_xact_lock(7002)`, // two at once take turns
			`CREATE TABLE IF NOT EXISTS schema_version (version int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())`,
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		var at int
		if err := tx.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM schema_version`).Scan(&at); err != nil {
			return err
		}
		files := migrationFiles()
		if at > len(files) {
			return fmt.Errorf("the schema has version %d, which is newer than %d", at, len(files))
		}
		for n, name := range files[at:] {
			text, err := migrations.ReadFile(name)
			if err == nil {
				_, err = tx.Exec(ctx, string(text))
			}
			if err == nil {
				_, err = tx.Exec(ctx, `INSERT INTO schema_version (version) VALUES ($1)`, at+n+1)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			applied++
		}
		return nil
	})
	return applied, err
}

// SignIn is a row about somebody who signed in.
type SignIn struct {
	Name, Email string
	At          time.Time // UTC
}

type store struct{ pool *pgxpool.Pool }

func (s store) record(ctx context.Context, in signin.Session) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO sign_ins (subject, name, email) VALUES ($1, $2, $3)`, in.Subject, in.Name, in.Email)
	return err
}

func (s store) latest(ctx context.Context) ([]SignIn, error) {
	rows, _ := s.pool.Query(ctx, `SELECT name, email, at AT TIME ZONE 'UTC' FROM sign_ins ORDER BY at DESC, id DESC LIMIT 20`) // CollectRows returns its error
	return pgx.CollectRows(rows, pgx.RowToStructByPos[SignIn])
}

// check fails unless the database answers and has the schema that this program works on. It
// returns why the console is in maintenance, or "".
func (s store) check(ctx context.Context) (maintenance string, err error) {
	var version int
	err = s.pool.QueryRow(ctx, `SELECT coalesce(max(version), 0),
		coalesce((SELECT reason FROM maintenance ORDER BY since LIMIT 1), '') FROM schema_version`).Scan(&version, &maintenance)
	if want := len(migrationFiles()); err == nil && version != want {
		err = fmt.Errorf("the database's schema has version %d, not %d", version, want)
	}
	return maintenance, err
}
