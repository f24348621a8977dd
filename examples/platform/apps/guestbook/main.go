// Command guestbook is the web app of the reference platform. It shows the rows of a PostgreSQL
// table as a page and as JSON, and it is ready only while its database answers.
//
// Settings: LISTEN, TITLE, and those of package database.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/slipway-sh/slipway/examples/platform/apps/database"
	"github.com/slipway-sh/slipway/examples/platform/apps/web"
)

//go:embed page.html
var page string

func main() { os.Exit(web.Main(context.Background(), map[string]web.Command{"": serve})) }

func serve(ctx context.Context, env *web.Env, log *slog.Logger) error {
	listen, title := env.Text("LISTEN", ":8080"), env.Text("TITLE", "Guestbook")
	pool, err := database.Open(ctx, env)
	if err != nil {
		return err
	}
	defer pool.Close()
	return web.Serve(ctx, listen, nil, handler(&entries{pool: pool}, title, log), log)
}

// source is where a handler's entries come from.
type source interface {
	list(ctx context.Context) ([]Entry, error)
	ping(ctx context.Context) error
}

// handler answers
//
//	GET /             the entries as a page
//	GET /api/entries  the entries as a JSON array
//	GET /healthz      200 while the process serves
//	GET /readyz       200 while the database answers, else 503
func handler(from source, title string, log *slog.Logger) http.Handler {
	shown := template.Must(template.New("page").Parse(page))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", web.OK)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 4*time.Second) // below the probe's timeout
		defer cancel()
		if err := from.ping(ctx); err != nil {
			web.Fail(w, log, http.StatusServiceUnavailable, err)
			return
		}
		web.OK(w, r)
	})
	listing := func(write func(http.ResponseWriter, []Entry) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), 8*time.Second)
			defer cancel()
			entries, err := from.list(ctx)
			if err != nil {
				web.Fail(w, log, http.StatusServiceUnavailable, err)
				return
			}
			_ = write(w, entries) // the client may be gone
		}
	}
	mux.HandleFunc("GET /{$}", listing(func(w http.ResponseWriter, entries []Entry) error {
		return shown.Execute(w, map[string]any{"Title": title, "Entries": entries})
	}))
	mux.HandleFunc("GET /api/entries", listing(func(w http.ResponseWriter, entries []Entry) error {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		return json.NewEncoder(w).Encode(entries)
	}))
	return mux
}

// Entry is a row of the guestbook.
type Entry struct {
	ID      int64     `json:"id"`
	Author  string    `json:"author"`
	Message string    `json:"message"`
	Created time.Time `json:"created"` // UTC
}

type entries struct {
	pool *pgxpool.Pool

	// together says that the authors are in the table of the entries, as far as is known. Since
	// release 2.0.0 they have a table of their own; while an upgrade or a rollback runs, either
	// may be there.
	together atomic.Bool
}

const (
	apartQuery    = `SELECT e.id, a.name, e.message, e.created FROM entries e JOIN authors a ON a.id = e.author_id ORDER BY e.created DESC, e.id DESC LIMIT 100`
	togetherQuery = `SELECT id, author, message, created FROM entries ORDER BY created DESC, id DESC LIMIT 100`
)

// list returns the newest 100 entries, never nil.
func (e *entries) list(ctx context.Context) ([]Entry, error) {
	for try := 1; ; try++ {
		together, query := e.together.Load(), apartQuery
		if together {
			query = togetherQuery
		}
		rows, _ := e.pool.Query(ctx, query) // CollectRows returns its error
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
		if err == nil {
			for i := range all {
				all[i].Created = all[i].Created.UTC()
			}
			return all, nil
		}
		var answer *pgconn.PgError
		const undefinedTable, undefinedColumn = "42P01", "42703"
		if try == 4 || !errors.As(err, &answer) || answer.Code != undefinedTable && answer.Code != undefinedColumn {
			return nil, fmt.Errorf("read the entries: %w", err)
		}
		e.together.CompareAndSwap(together, !together)
	}
}

// ping fails unless the database answers and the program may read the table.
func (e *entries) ping(ctx context.Context) error {
	_, err := e.pool.Exec(ctx, `SELECT FROM entries LIMIT 1`)
	return err
}
