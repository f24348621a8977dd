// Command portal is the portal of the addons platform, and the platform's other programs:
//
//	portal serve          the web app: users sign in through Dex, and see the addons
//	portal register       makes users and the portal's client in Dex, and a Secret with the client's secret
//	portal load-balancer  gives Services of a class the addresses of the nodes, or given ones
//
// register may be run again at any time. Settings of serve: those of signin.New, LISTEN,
// ISSUER_ADDRESS, CA_DIRS (separated by colons), CLUSTER and ADDONS_FILE, JSON of addresses by name.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-sh/slipway/examples/platform/apps/signin"
	"github.com/slipway-sh/slipway/examples/platform/apps/web"
)

//go:embed page.html
var page string

func main() {
	os.Exit(web.Main(context.Background(), map[string]web.Command{"serve": serve, "register": registerAll, "load-balancer": balanceAll}))
}

func serve(ctx context.Context, env *web.Env, log *slog.Logger) error {
	listen, cluster, list := env.Text("LISTEN", ":8080"), env.Optional("CLUSTER"), env.File("ADDONS_FILE")
	users, err := signin.New(env, log)
	if err != nil {
		return err
	}
	users.Address = env.Optional("ISSUER_ADDRESS")
	for _, dir := range filepath.SplitList(env.Optional("CA_DIRS")) {
		users.CA = append(users.CA, filepath.Join(dir, "*.crt"))
	}
	var addons map[string]string
	if err := json.Unmarshal([]byte(list), &addons); err != nil {
		return fmt.Errorf("ADDONS_FILE: %w", err)
	}
	return web.Serve(ctx, listen, nil, handler(users, cluster, addons, log), log)
}

// handler answers what signin.Users does, and
//
//	GET /         who has signed in, and the addons; without a session, where to sign in
//	GET /livez    200 while the process serves
//	GET /healthz  200 while users can sign in, else 503
func handler(users *signin.Users, cluster string, addons map[string]string, log *slog.Logger) http.Handler {
	shown := template.Must(template.New("page").Parse(page))
	mux := http.NewServeMux()
	users.Handle(mux)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		_ = shown.Execute(w, map[string]any{"Cluster": cluster, "Addons": addons, "Session": users.Session(r)}) // the client may be gone
	})
	mux.HandleFunc("GET /livez", web.OK)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second) // below the timeout of the readiness probe
		defer cancel()
		if err := users.Check(ctx); err != nil {
			log.Error("health", "error", err.Error())
			http.Error(w, "the issuer does not answer", http.StatusServiceUnavailable)
			return
		}
		web.OK(w, r)
	})
	return mux
}
