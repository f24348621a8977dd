package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/dexidp/dex/api/v2"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// hashCost is the cost of the hash of a password that Dex recommends.
const hashCost = 12

// clientID is what the portal is to Dex.
const clientID = "portal"

// Register makes sure that users can sign in at the portal: the users and the portal's client
// are in Dex, and the Secret has the client's secret. It returns what it did.
func Register(ctx context.Context, c RegisterConfig, cluster *Cluster) (done []string, err error) {
	text, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("CA_FILE: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("CA_FILE: %s holds no certificate", c.CA)
	}
	conn, err := grpc.NewClient(c.API,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots})),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		return nil, fmt.Errorf("DEX_API: %w", err)
	}
	defer func() { _ = conn.Close() }() // every answer is there
	return register(ctx, api.NewDexClient(conn), c, cluster)
}

func register(ctx context.Context, dex api.DexClient, c RegisterConfig, cluster *Cluster) (done []string, err error) {
	for _, u := range c.Users {
		did, err := registerUser(ctx, dex, u)
		if err != nil {
			return done, err
		}
		done = append(done, "user "+u.Name+": "+did)
	}
	secret, made, err := clientSecret(ctx, c, cluster)
	if err != nil {
		return done, err
	}
	did, err := registerClient(ctx, dex, c.PortalURL, secret)
	if err != nil {
		return done, err
	}
	done = append(done, "client "+clientID+": "+did)
	// Last: who reads it may rely on the client.
	if made {
		if err := publish(ctx, c, cluster, secret); err != nil {
			return done, err
		}
		done = append(done, "secret "+c.Secret+": created")
	}
	return done, nil
}

// registerUser makes a user, or changes the password of the one that is there.
func registerUser(ctx context.Context, dex api.DexClient, u User) (string, error) {
	seen, err := dex.VerifyPassword(ctx, &api.VerifyPasswordReq{Email: u.Email, Password: string(u.Password)})
	if err != nil {
		return "", fmt.Errorf("ask for the user %s: %w", u.Email, err)
	}
	if seen.Verified {
		return "unchanged", nil
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(u.Password), hashCost)
	if err != nil {
		return "", fmt.Errorf("hash the password of %s: %w", u.Email, err)
	}
	if seen.NotFound {
		made, err := dex.CreatePassword(ctx, &api.CreatePasswordReq{
			Password: &api.Password{Email: u.Email, Username: u.Name, UserId: u.Name, Hash: hash},
		})
		if err != nil {
			return "", fmt.Errorf("make the user %s: %w", u.Email, err)
		}
		if !made.AlreadyExists {
			return "created", nil
		}
		// Somebody was faster; the password is to be the one that we know.
	}
	if _, err := dex.UpdatePassword(ctx, &api.UpdatePasswordReq{Email: u.Email, NewHash: hash, NewUsername: u.Name}); err != nil {
		return "", fmt.Errorf("change the password of %s: %w", u.Email, err)
	}
	return "password changed", nil
}

// registerClient makes the portal's client anew: Dex changes no secret of one that is there.
func registerClient(ctx context.Context, dex api.DexClient, portal string, secret Secret) (string, error) {
	gone, err := dex.DeleteClient(ctx, &api.DeleteClientReq{Id: clientID})
	if err != nil {
		return "", fmt.Errorf("remove the client %s: %w", clientID, err)
	}
	made, err := dex.CreateClient(ctx, &api.CreateClientReq{Client: &api.Client{
		Id: clientID, Name: "Portal", Secret: string(secret), RedirectUris: []string{portal + callbackPath},
	}})
	if err != nil {
		return "", fmt.Errorf("make the client %s: %w", clientID, err)
	}
	switch {
	case made.AlreadyExists:
		return "", fmt.Errorf("make the client %s: somebody else has made it meanwhile", clientID)
	case gone.NotFound:
		return "created", nil
	}
	return "made anew", nil
}

// path is where the API has the Secrets of a namespace.
func (c RegisterConfig) path() string { return "/api/v1/namespaces/" + c.Namespace + "/secrets" }

// clientSecret is the secret of the portal's client: the one that is in the Secret, or, with
// made, a new one.
func clientSecret(ctx context.Context, c RegisterConfig, cluster *Cluster) (secret Secret, made bool, err error) {
	var have struct {
		Data map[string]string `json:"data"`
	}
	err = cluster.call(ctx, http.MethodGet, c.path()+"/"+c.Secret, "", nil, &have)
	var status *statusError
	switch {
	case errors.As(err, &status) && status.code == http.StatusNotFound:
		return Secret(rand.Text()), true, nil
	case err != nil:
		return "", false, fmt.Errorf("read the Secret %s: %w", c.Secret, err)
	}
	text, err := base64.StdEncoding.DecodeString(have.Data[clientID])
	if err != nil || len(text) == 0 {
		return "", false, fmt.Errorf("read the Secret %s: it has no key %s", c.Secret, clientID)
	}
	return Secret(text), false, nil
}

// publish makes the Secret.
func publish(ctx context.Context, c RegisterConfig, cluster *Cluster, secret Secret) error {
	err := cluster.call(ctx, http.MethodPost, c.path(), "application/json", map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": c.Secret},
		"stringData": map[string]any{clientID: string(secret)},
	}, nil)
	if err != nil {
		return fmt.Errorf("make the Secret %s: %w", c.Secret, err)
	}
	return nil
}
