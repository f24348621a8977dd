package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// MaxSignIns is how many rows a page shows, the latest first.
const MaxSignIns = 20

// SignIn is a row about somebody who signed in.
type SignIn struct {
	Subject string // as the issuer calls them; it never changes
	Name    string
	Email   string
	At      time.Time // UTC
}

// Store is the console's database. Methods may be called concurrently.
type Store struct {
	pool *pgxpool.Pool
}

// connection is how a driver connects.
func (d Database) connection() (*pgx.ConnConfig, error) {
	conn, err := pgx.ParseConfig("")
	if err != nil {
		return nil, fmt.Errorf("prepare the connection: %w", err)
	}
	port, err := strconv.ParseUint(d.Port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_PORT: %w", err)
	}
	conn.Host, conn.Port, conn.Database = d.Host, uint16(port), d.Name
	conn.User, conn.Password = d.User, string(d.Password)
	conn.TLSConfig, conn.Fallbacks = nil, nil // the traffic stays inside the cluster
	conn.ConnectTimeout = 2 * time.Second
	conn.RuntimeParams = map[string]string{"application_name": "console", "statement_timeout": "5000"}
	return conn, nil
}

// Open prepares a pool of connections. It does not connect: a database that starts later
// than the console is found by the first query.
func Open(ctx context.Context, d Database) (*Store, error) {
	cfg, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, fmt.Errorf("prepare the pool: %w", err)
	}
	if cfg.ConnConfig, err = d.connection(); err != nil {
		return nil, err
	}
	cfg.MaxConns, cfg.MinConns = 4, 0
	cfg.MaxConnIdleTime, cfg.HealthCheckPeriod = time.Minute, 30*time.Second
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the pool: %w", err)
	}
	return &Store{pool: pool}, nil
}

// Record adds a row.
func (s *Store) Record(ctx context.Context, in SignIn) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO sign_ins (subject, name, email, at) VALUES ($1, $2, $3, $4)`,
		in.Subject, in.Name, in.Email, in.At)
	if err != nil {
		return fmt.Errorf("record a sign-in: %w", err)
	}
	return nil
}

// Latest returns the latest rows, at most MaxSignIns.
func (s *Store) Latest(ctx context.Context) ([]SignIn, error) {
	rows, err := s.pool.Query(ctx, `SELECT subject, name, email, at FROM sign_ins ORDER BY at DESC, id DESC LIMIT $1`, MaxSignIns)
	if err != nil {
		return nil, fmt.Errorf("read the sign-ins: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (SignIn, error) {
		var in SignIn
		err := row.Scan(&in.Subject, &in.Name, &in.Email, &in.At)
		in.At = in.At.UTC()
		return in, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the sign-ins: %w", err)
	}
	return all, nil
}

// Check tells whether the database answers and has the schema that this program works on,
// and why the console is in maintenance; empty if it is not.
func (s *Store) Check(ctx context.Context) (maintenance string, err error) {
	var version int
	err = s.pool.QueryRow(ctx, `SELECT coalesce(max(version), 0),
		coalesce((SELECT reason FROM maintenance ORDER BY since LIMIT 1), '') FROM schema_version`).Scan(&version, &maintenance)
	if err != nil {
		return "", fmt.Errorf("ask the database: %w", err)
	}
	if want := schemaVersion(); version != want {
		return "", fmt.Errorf("the database's schema has version %d, not %d", version, want)
	}
	return maintenance, nil
}

// Close waits for running queries and closes all connections.
func (s *Store) Close() { s.pool.Close() }
