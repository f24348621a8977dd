package signin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/dexidp/dex/api/v2"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/slipway-sh/slipway/examples/platform/apps/web"
)

// Dex connects to the gRPC API of Dex: DEX_API is its host:port, CA_FILE holds the certificate to
// trust.
func Dex(env *web.Env) (dex api.DexClient, hangUp func(), err error) {
	address, ca := env.Text("DEX_API", ""), env.File("CA_FILE")
	if err := env.Err(); err != nil {
		return nil, nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ca)) {
		return nil, nil, errors.New("CA_FILE holds no certificate")
	}
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots})),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		return nil, nil, fmt.Errorf("DEX_API: %w", err)
	}
	return api.NewDexClient(conn), func() { _ = conn.Close() }, nil
}

// User is a person who signs in with a password.
type User struct {
	ID          string // never changes
	Name, Email string
	Password    web.Secret
}

// Put makes sure that the user can sign in with the password.
func Put(ctx context.Context, dex api.DexClient, u User) error {
	hash, err := bcrypt.GenerateFromPassword([]byte(u.Password), 12) // the cost that Dex recommends
	if err != nil {
		return fmt.Errorf("hash the password of %s: %w", u.Email, err)
	}
	made, err := dex.CreatePassword(ctx, &api.CreatePasswordReq{
		Password: &api.Password{Email: u.Email, Username: u.Name, UserId: u.ID, Hash: hash},
	})
	if err == nil && made.AlreadyExists {
		_, err = dex.UpdatePassword(ctx, &api.UpdatePasswordReq{Email: u.Email, NewHash: hash, NewUsername: u.Name})
	}
	if err != nil {
		return fmt.Errorf("make the user %s: %w", u.Email, err)
	}
	return nil
}
