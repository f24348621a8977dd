// Package database connects the example programs to PostgreSQL.
package database

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/slipway-sh/slipway/examples/platform/apps/web"
)

// Open prepares connections to the database of DATABASE_HOST, DATABASE_PORT, DATABASE_NAME,
// DATABASE_USER and DATABASE_PASSWORD_FILE. It does not connect: a database that starts later is
// found by the first query.
func Open(ctx context.Context, env *web.Env) (*pgxpool.Pool, error) {
	host, port, name := env.Text("DATABASE_HOST", ""), env.Text("DATABASE_PORT", "5432"), env.Text("DATABASE_NAME", "")
	user, password := env.Text("DATABASE_USER", ""), env.File("DATABASE_PASSWORD_FILE")
	if err := env.Err(); err != nil {
		return nil, err
	}
	// The traffic stays inside the cluster.
	cfg, err := pgxpool.ParseConfig("postgres://" + net.JoinHostPort(host, port) + "/" + name + "?sslmode=disable&connect_timeout=3&statement_timeout=5000&pool_max_conns=4&pool_max_conn_idle_time=1m")
	if err != nil {
		return nil, fmt.Errorf("DATABASE_HOST, DATABASE_PORT, DATABASE_NAME: %w", err)
	}
	cfg.ConnConfig.User, cfg.ConnConfig.Password = user, string(password)
	// A prepared statement fails once a migration has changed the columns of its result.
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.HealthCheckPeriod = 30 * time.Second
	return pgxpool.NewWithConfig(ctx, cfg)
}
