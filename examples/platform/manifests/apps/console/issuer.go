package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Issuer is the identity service that users sign in at. Methods may be called
// concurrently.
type Issuer struct {
	url    string
	client *http.Client
	oauth  oauth2.Config // without the endpoints

	mu       sync.Mutex
	provider *oidc.Provider // what it says about itself; nil until it has answered
}

// NewIssuer prepares the connection. It does not connect: an issuer that starts later than
// the console is found by the first sign-in.
func NewIssuer(c IssuerConfig, publicURL string) (*Issuer, error) {
	roots, err := trusted(c.CA)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	return &Issuer{
		url:    c.URL,
		client: &http.Client{Transport: transport, Timeout: 10 * time.Second},
		oauth: oauth2.Config{
			ClientID: c.ClientID, ClientSecret: string(c.ClientSecret),
			RedirectURL: publicURL + callbackPath, Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
		},
	}, nil
}

// trusted are the system's certificate authorities and those in a file; nil, which means
// the system's, without one.
func trusted(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificates: %w", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("CA_FILE: %w", err)
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("CA_FILE: %s holds no certificate", file)
	}
	return pool, nil
}

// Discover asks the issuer about itself, and fails unless it is the one that it should be.
func (i *Issuer) Discover(ctx context.Context) error {
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.url)
	if err != nil {
		return fmt.Errorf("ask the issuer: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.provider == nil {
		i.provider = p
	}
	return nil
}

// known is what the issuer has said about itself; it is asked if it has not yet.
func (i *Issuer) known(ctx context.Context) (*oidc.Provider, error) {
	i.mu.Lock()
	p := i.provider
	i.mu.Unlock()
	if p != nil {
		return p, nil
	}
	if err := i.Discover(ctx); err != nil {
		return nil, err
	}
	return i.known(ctx)
}

// Attempt is what a browser keeps while its user is at the issuer.
type Attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // of PKCE
}

// Begin starts an attempt to sign in, and returns the address at the issuer.
func (i *Issuer) Begin(ctx context.Context) (a Attempt, address string, err error) {
	p, err := i.known(ctx)
	if err != nil {
		return Attempt{}, "", err
	}
	a = Attempt{State: random(), Nonce: random(), Verifier: oauth2.GenerateVerifier()}
	oauth := i.oauth
	oauth.Endpoint = p.Endpoint()
	return a, oauth.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// Finish exchanges the code that the issuer gave for what it says about the user.
func (i *Issuer) Finish(ctx context.Context, a Attempt, code string) (Session, error) {
	p, err := i.known(ctx)
	if err != nil {
		return Session{}, err
	}
	ctx = oidc.ClientContext(ctx, i.client)
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
