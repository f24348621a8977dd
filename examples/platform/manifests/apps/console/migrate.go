package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is held in the database while its schema is changed: two at once take
// turns.
const migrationLock = 7002

// schemaVersion is the version of the schema that this program works on: the number of
// its migrations.
func schemaVersion() int { return len(migrationFiles()) }

// migrationFiles are the names of the migrations, in their order.
func migrationFiles() []string {
	files, _ := fs.Glob(migrations, "migrations/*.sql") // it fails for malformed patterns only
	return files
}

// errNewer means that the database has the schema of a later version of this program.
var errNewer = errors.New("the database has a newer schema")

// Migrate brings the database's schema to schemaVersion, all of it or nothing, and returns
// how many migrations it took.
func Migrate(ctx context.Context, d Database) (applied int, err error) {
	cfg, err := d.connection()
	if err != nil {
		return 0, err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return 0, fmt.Errorf("connect to %s: %w", d, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // everything is committed
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		applied, err = migrate(ctx, tx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("migrate %s: %w", d, err)
	}
	return applied, nil
}

func migrate(ctx context.Context, tx pgx.Tx) (applied int, err error) {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, migrationLock); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS schema_version (
		version int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())`); err != nil {
		return 0, err
	}
	var at int
	if err := tx.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM schema_version`).Scan(&at); err != nil {
		return 0, err
	}
	files := migrationFiles()
	if at > len(files) {
		return 0, fmt.Errorf("%w: version %d, and this program knows %d", errNewer, at, len(files))
	}
	for n, name := range files[at:] {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return applied, err
		}
		if _, err := tx.Exec(ctx, string(text)); err != nil {
			return applied, fmt.Errorf("%s: %w", name, err)
		}
		if _, err := tx.Exec(ctx, `INSERT INTO schema_version (version) VALUES ($1)`, at+n+1); err != nil {
			return applied, err
		}
		applied++
	}
	return applied, nil
}
