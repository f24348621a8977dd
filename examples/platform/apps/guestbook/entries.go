package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
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
}

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
	conn.ConnectTimeout = 2 * time.Second
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
	rows, err := e.pool.Query(ctx,
		`SELECT id, author, message, created FROM entries ORDER BY created DESC, id DESC LIMIT $1`, MaxEntries)
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
