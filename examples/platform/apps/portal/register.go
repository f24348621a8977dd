package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/dexidp/dex/api/v2"

	"github.com/slipway-sh/slipway/examples/platform/apps/signin"
	"github.com/slipway-sh/slipway/examples/platform/apps/web"
)

// clientID is the portal's name in Dex, and the key of its secret in the Secret.
const clientID = "portal"

// registerAll reads the settings of signin.Dex, USERS_FILE (JSON, by name), USERS_DOMAIN,
// PASSWORDS_DIR (a file for each user), PORTAL_URL, NAMESPACE and SECRET.
func registerAll(ctx context.Context, env *web.Env, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	list, domain, passwords := env.File("USERS_FILE"), env.Text("USERS_DOMAIN", ""), env.Text("PASSWORDS_DIR", "")
	portal, secret := env.URL("PORTAL_URL"), "/api/v1/namespaces/"+env.Text("NAMESPACE", "")+"/secrets/"+env.Text("SECRET", "")
	dex, hangUp, err := signin.Dex(env)
	if err != nil {
		return err
	}
	defer hangUp()
	cluster, err := inCluster(env)
	if err != nil {
		return err
	}
	var users map[string]json.RawMessage
	if err := json.Unmarshal([]byte(list), &users); err != nil {
		return fmt.Errorf("USERS_FILE: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		password, err := os.ReadFile(filepath.Join(passwords, name))
		if err != nil {
			return err
		}
		if err := signin.Put(ctx, dex, signin.User{ID: name, Name: name, Email: name + "@" + domain, Password: web.Secret(password)}); err != nil {
			return err
		}
	}
	if err := register(ctx, dex, cluster, portal, secret); err != nil {
		return err
	}
	log.Info("registered", "users", len(users))
	return nil
}

// register makes sure that Dex has the portal's client, and that the Secret object, a path of the API, has the
// client's secret. It keeps a secret that is there.
func register(ctx context.Context, dex api.DexClient, cluster *cluster, portal, object string) error {
	var have struct {
		Data map[string]string `json:"data"`
	}
	err := cluster.call(ctx, http.MethodGet, object, nil, &have)
	made := errors.Is(err, errNotFound)
	if err != nil && !made {
		return fmt.Errorf("read the Secret: %w", err)
	}
	secret := rand.Text()
	if !made {
		text, err := base64.StdEncoding.DecodeString(have.Data[clientID])
		if err != nil || len(text) == 0 {
			return fmt.Errorf("read the Secret: it has no key %s", clientID)
		}
		secret = string(text)
	}
	// Dex cannot change the secret of a client, so the client is made anew.
	if _, err := dex.DeleteClient(ctx, &api.DeleteClientReq{Id: clientID}); err != nil {
		return fmt.Errorf("remove the client %s: %w", clientID, err)
	}
	if _, err := dex.CreateClient(ctx, &api.CreateClientReq{Client: &api.Client{
		Id: clientID, Name: "Portal", Secret: secret, RedirectUris: []string{portal + "/callback"},
	}}); err != nil {
		return fmt.Errorf("make the client %s: %w", clientID, err)
	}
	if !made {
		return nil
	}
	// Last: a reader of the Secret may rely on the client.
	err = cluster.call(ctx, http.MethodPost, path.Dir(object), map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": path.Base(object)}, "stringData": map[string]any{clientID: secret},
	}, nil)
	if err != nil {
		return fmt.Errorf("make the Secret: %w", err)
	}
	return nil
}
