package main

import (
	"context"
	"crypto/tls"
	"fmt"

	"github.com/dexidp/dex/api/v2"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// hashCost is the cost of the hash of a password that Dex recommends.
const hashCost = 12

// CreateAdmin makes sure that the administrator can sign in with the password: it makes
// the user, or changes the password of the one that is there. It returns what it did.
func CreateAdmin(ctx context.Context, c AdminConfig) (done string, err error) {
	roots, err := trusted(c.CA)
	if err != nil {
		return "", err
	}
	conn, err := grpc.NewClient(c.API,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots})),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		return "", fmt.Errorf("DEX_API: %w", err)
	}
	defer func() { _ = conn.Close() }() // every answer is there
	return createAdmin(ctx, api.NewDexClient(conn), c)
}

func createAdmin(ctx context.Context, dex api.DexClient, c AdminConfig) (string, error) {
	seen, err := dex.VerifyPassword(ctx, &api.VerifyPasswordReq{Email: c.Email, Password: string(c.Password)})
	if err != nil {
		return "", fmt.Errorf("ask for the user %s: %w", c.Email, err)
	}
	if seen.Verified {
		return "unchanged", nil
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(c.Password), hashCost)
	if err != nil {
		return "", fmt.Errorf("hash the password: %w", err)
	}
	if seen.NotFound {
		made, err := dex.CreatePassword(ctx, &api.CreatePasswordReq{
			Password: &api.Password{Email: c.Email, Username: c.Name, UserId: c.ID, Hash: hash},
		})
		if err != nil {
			return "", fmt.Errorf("make the user %s: %w", c.Email, err)
		}
		if !made.AlreadyExists {
			return "created", nil
		}
		// Somebody was faster; the password is to be the one that we know.
	}
	changed, err := dex.UpdatePassword(ctx, &api.UpdatePasswordReq{Email: c.Email, NewHash: hash, NewUsername: c.Name})
	if err != nil {
		return "", fmt.Errorf("change the password of %s: %w", c.Email, err)
	}
	if changed.NotFound {
		return "", fmt.Errorf("change the password of %s: the user is gone", c.Email)
	}
	return "password changed", nil
}
