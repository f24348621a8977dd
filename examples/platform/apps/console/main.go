// Command console is the web app of the identity platform, and what the platform's Jobs run:
//
//	console serve         the web app: users sign in through Dex, and see who else has
//	console migrate       brings the database's schema to what the web app works on
//	console create-admin  makes the administrator in Dex
//
// The last two may be run again at any time. Settings of all: those of package database or
// signin.Dex. Of serve: those of signin.New, LISTEN, TLS_CERTIFICATE_FILE, TLS_KEY_FILE, CA_FILE
// (of the issuer), TITLE, CLUSTER_ID and LICENSE_HOLDER. Of create-admin: ADMIN_EMAIL, ADMIN_NAME,
// ADMIN_ID and ADMIN_PASSWORD_FILE.
package main

import (
	"context"
	"crypto/tls"
	_ "embed"
	"html/template"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/examples/platform/apps/database"
	"github.com/slipway-sh/slipway/examples/platform/apps/signin"
	"github.com/slipway-sh/slipway/examples/platform/apps/web"
)

//go:embed page.html
var page string

// jobLimit is how long a Job may take.
const jobLimit = 2 * time.Minute

func main() {
	os.Exit(web.Main(context.Background(), map[string]web.Command{"serve": serve, "migrate": migrateDatabase, "create-admin": createAdmin}))
}

func serve(ctx context.Context, env *web.Env, log *slog.Logger) error {
	certificate, key := env.Text("TLS_CERTIFICATE_FILE", ""), env.Text("TLS_KEY_FILE", "")
	shown := options{Title: env.Text("TITLE", "Console"), ClusterID: env.Optional("CLUSTER_ID"), Licensee: env.Optional("LICENSE_HOLDER")}
	users, err := signin.New(env, log)
	if err != nil {
		return err
	}
	users.CA = []string{env.Optional("CA_FILE")}
	pool, err := database.Open(ctx, env)
	if err != nil {
		return err
	}
	defer pool.Close()
	pair := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { // read anew, for it may be renewed
		c, err := tls.LoadX509KeyPair(certificate, key)
		return &c, err
	}
	if _, err := pair(nil); err != nil {
		return err
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: pair}
	return web.Serve(ctx, env.Text("LISTEN", ":8443"), secure, handler(store{pool}, users, shown, log), log)
}

func migrateDatabase(ctx context.Context, env *web.Env, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, jobLimit)
	defer cancel()
	pool, err := database.Open(ctx, env)
	if err != nil {
		return err
	}
	defer pool.Close()
	applied, err := migrate(ctx, pool)
	if err == nil {
		log.Info("migrated", "applied", applied)
	}
	return err
}

func createAdmin(ctx context.Context, env *web.Env, _ *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, jobLimit)
	defer cancel()
	u := signin.User{
		ID: env.Text("ADMIN_ID", ""), Name: env.Text("ADMIN_NAME", ""), Email: env.Text("ADMIN_EMAIL", ""), Password: env.File("ADMIN_PASSWORD_FILE"),
	}
	dex, hangUp, err := signin.Dex(env)
	if err != nil {
		return err
	}
	defer hangUp()
	return signin.Put(ctx, dex, u)
}

// options are what the console shows besides its rows.
type options struct{ Title, ClusterID, Licensee string }

// rows is where a handler's rows are.
type rows interface {
	record(ctx context.Context, in signin.Session) error
	latest(ctx context.Context) ([]SignIn, error)
	check(ctx context.Context) (maintenance string, err error)
}

// handler answers what signin.Users does, and
//
//	GET /         who has signed in, and the latest sign-ins; without a session, where to sign in
//	GET /livez    200 while the process serves
//	GET /readyz   200 while the database answers, else 503
//	GET /healthz  200 while users can sign in and the console is not in maintenance, else 503 and what is missing
func handler(from rows, users *signin.Users, o options, log *slog.Logger) http.Handler {
	shown := template.Must(template.New("page").Parse(page))
	mux := http.NewServeMux()
	users.SignedIn = from.record
	users.Handle(mux)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		content := struct {
			options
			Session *signin.Session
			SignIns []SignIn
		}{options: o, Session: users.Session(r)}
		if content.Session != nil {
			ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
			defer cancel()
			var err error
			if content.SignIns, err = from.latest(ctx); err != nil {
				web.Fail(w, log, http.StatusServiceUnavailable, err)
				return
			}
		}
		_ = shown.Execute(w, content) // the client may be gone
	})
	const checkLimit = time.Second // below the timeout of the readiness probe
	mux.HandleFunc("GET /livez", web.OK)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), checkLimit)
		defer cancel()
		if _, err := from.check(ctx); err != nil {
			web.Fail(w, log, http.StatusServiceUnavailable, err)
			return
		}
		web.OK(w, r)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), checkLimit)
		defer cancel()
		var unanswered error
		var wg sync.WaitGroup // a slow one takes no time from the other
		wg.Go(func() { unanswered = users.Check(ctx) })
		maintenance, err := from.check(ctx)
		wg.Wait()
		var missing []string
		if err != nil {
			log.Error("health", "error", err.Error())
			missing = append(missing, "the database does not answer")
		}
		if maintenance != "" {
			missing = append(missing, "in maintenance: "+maintenance)
		}
		if unanswered != nil {
			log.Error("health", "error", unanswered.Error())
			missing = append(missing, "the issuer does not answer")
		}
		if len(missing) > 0 {
			http.Error(w, strings.Join(missing, "\n"), http.StatusServiceUnavailable)
			return
		}
		web.OK(w, r)
	})
	return mux
}
