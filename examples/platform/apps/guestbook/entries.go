package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// MaxEntries is how many entries a page shows, the newest first.
const MaxEntries = 100

// Entry is a row of the guestbook.
type Entry struct {
	ID      int64     `json:"id"`
	Author  string    `json:"author"`
	Message string    `json:"message"`
	Created time.Time `json:"created"` // UTC
}

// Entries are the rows in PostgreSQL. Methods may be called concurrently.
type Entries struct {
	pool *pgxpool.Pool

	// together: the authors are in the table of the entries, as far as is known. Since release
	// 2.0.0 they have a table of their own; during an upgrade, and back, either may be there.
	together atomic.Bool
}

// What List asks.
const (
	apartQuery    = `SELECT e.id, a.name, e.message, e.created FROM entries e JOIN authors a ON a.id = e.author_id ORDER BY e.created DESC, e.id DESC LIMIT $1`
	togetherQuery = `SELECT id, author, message, created FROM entries ORDER BY created DESC, id DESC LIMIT $1`
)

// What PostgreSQL says when tables have changed.
const (
	undefinedTable  = "42P01"
	undefinedColumn = "42703"
	changedResult   = "0A000" // of a statement that was prepared before
)

// maxTries is how often List asks before it gives up: the tables may change twice in a row.
const maxTries = 4

// Open prepares a pool of connections. It does not connect: a database that
// starts later than the app is found by the first query.
func Open(ctx context.Context, d Database) (*Entries, error) {
	cfg, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, fmt.Errorf("prepare the pool: %w", err)
	}
	port, err := strconv.ParseUint(d.Port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_PORT: %w", err)
	}
	conn := cfg.ConnConfig
	conn.Host, conn.Port, conn.Database = d.Host, uint16(port), d.Name
	conn.User, conn.Password = d.User, string(d.Password)
	conn.TLSConfig, conn.Fallbacks = nil, nil // the traffic stays inside the cluster
	conn.ConnectTimeout = 4 * time.Second
	conn.RuntimeParams = map[string]string{"application_name": "guestbook", "statement_timeout": "5000"}
	cfg.MaxConns, cfg.MinConns = 4, 0
	cfg.MaxConnIdleTime, cfg.HealthCheckPeriod = time.Minute, 30*time.Second
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the pool: %w", err)
	}
	return &Entries{pool: pool}, nil
}

// List returns the newest entries, at most MaxEntries.
func (e *Entries) List(ctx context.Context) ([]Entry, error) {
	for try := 1; ; try++ {
		together := e.together.Load()
		entries, err := e.list(ctx, together)
		if err == nil {
			return entries, nil
		}
		var answer *pgconn.PgError
		if try == maxTries || !errors.As(err, &answer) {
			return nil, err
		}
		switch answer.Code {
		case undefinedTable, undefinedColumn:
			e.together.CompareAndSwap(together, !together)
		case changedResult:
		default:
			return nil, err
		}
	}
}

// list asks for the newest entries where the authors are in their table, or in one of their own.
func (e *Entries) list(ctx context.Context, together bool) ([]Entry, error) {
	query := apartQuery
	if together {
		query = togetherQuery
	}
	rows, err := e.pool.Query(ctx, query, MaxEntries)
	if err != nil {
		return nil, fmt.Errorf("read the entries: %w", err)
	}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Entry, error) {
		var entry Entry
		err := row.Scan(&entry.ID, &entry.Author, &entry.Message, &entry.Created)
		entry.Created = entry.Created.UTC()
		return entry, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the entries: %w", err)
	}
	return entries, nil
}

// Ping tells whether the database answers and lets the app read its table. A
// table that is empty is fine.
func (e *Entries) Ping(ctx context.Context) error {
	if _, err := e.pool.Exec(ctx, `SELECT FROM entries LIMIT 1`); err != nil {
		return fmt.Errorf("ask the database: %w", err)
	}
	return nil
}

// Close waits for running queries and closes all connections.
func (e *Entries) Close() { e.pool.Close() }
