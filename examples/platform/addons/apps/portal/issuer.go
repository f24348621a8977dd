package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Issuer is who users sign in at. It is asked anew each time: what it shows itself with, and
// what is to be trusted for that, may change while the portal runs. Methods may be called
// concurrently.
type Issuer struct {
	cfg   IssuerConfig
	oauth oauth2.Config // without the endpoints
}

// NewIssuer is the issuer of a portal. It does not connect.
func NewIssuer(c IssuerConfig, publicURL string) *Issuer {
	return &Issuer{cfg: c, oauth: oauth2.Config{
		ClientID: c.ClientID, ClientSecret: string(c.ClientSecret),
		RedirectURL: publicURL + callbackPath, Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
	}}
}

// client speaks to the issuer alone, at its address in the cluster if it has one, and knows it
// by the name that browsers use.
func (i *Issuer) client() (*http.Client, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificates: %w", err)
	}
	for _, dir := range i.cfg.CA {
		files, err := filepath.Glob(filepath.Join(dir, "*.crt"))
		if err != nil {
			return nil, fmt.Errorf("CA_DIRS: %w", err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("CA_DIRS: %w", err)
			}
			if !roots.AppendCertsFromPEM(text) {
				return nil, fmt.Errorf("CA_DIRS: %s holds no certificate", file)
			}
		}
	}
	var dialer net.Dialer
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if i.cfg.Address != "" {
				address = i.cfg.Address
			}
			return dialer.DialContext(ctx, network, address)
		},
	}}, nil
}

// provider asks the issuer about itself.
func (i *Issuer) provider(ctx context.Context) (context.Context, *oidc.Provider, error) {
	client, err := i.client()
	if err != nil {
		return ctx, nil, err
	}
	ctx = oidc.ClientContext(ctx, client)
	p, err := oidc.NewProvider(ctx, i.cfg.URL)
	if err != nil {
		return ctx, nil, fmt.Errorf("ask the issuer: %w", err)
	}
	return ctx, p, nil
}

// Discover fails unless the issuer answers and is the one that it should be.
func (i *Issuer) Discover(ctx context.Context) error {
	_, _, err := i.provider(ctx)
	return err
}

// Attempt is what a browser keeps while its user is at the issuer.
type Attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // of PKCE
}

// Begin starts an attempt to sign in, and returns the address at the issuer.
func (i *Issuer) Begin(ctx context.Context) (a Attempt, address string, err error) {
	_, p, err := i.provider(ctx)
	if err != nil {
		return Attempt{}, "", err
	}
	a = Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	oauth := i.oauth
	oauth.Endpoint = p.Endpoint()
	return a, oauth.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// Finish exchanges the code that the issuer gave for what it says about the user.
func (i *Issuer) Finish(ctx context.Context, a Attempt, code string) (Session, error) {
	ctx, p, err := i.provider(ctx)
	if err != nil {
		return Session{}, err
	}
	oauth := i.oauth
	oauth.Endpoint = p.Endpoint()
	tokens, err := oauth.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return Session{}, fmt.Errorf("exchange the code: %w", err)
	}
	raw, ok := tokens.Extra("id_token").(string)
	if !ok {
		return Session{}, errors.New("exchange the code: the issuer gave no ID token")
	}
	token, err := p.VerifierContext(ctx, &oidc.Config{ClientID: i.oauth.ClientID}).Verify(ctx, raw)
	if err != nil {
		return Session{}, fmt.Errorf("verify the ID token: %w", err)
	}
	if token.Nonce != a.Nonce {
		return Session{}, errors.New("verify the ID token: it is of another sign-in")
	}
	s := Session{Subject: token.Subject}
	if err := token.Claims(&s); err != nil {
		return Session{}, fmt.Errorf("read the ID token: %w", err)
	}
	return s, nil
}

// Session is who has signed in, as the issuer says.
type Session struct {
	Subject string `json:"sub"`
	Name    string `json:"name"`
	Email   string `json:"email"`
}
