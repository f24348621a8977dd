// Package signin signs the users of an example program in through OpenID Connect, with code, PKCE,
// state and nonce, and keeps who they are in an encrypted cookie.
package signin

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/slipway-sh/slipway/examples/platform/apps/web"
)

// What a browser keeps, and for how long.
const (
	sessionCookie = "__Host-session"
	sessionLife   = 8 * time.Hour
	attemptCookie = "__Host-attempt"
	attemptLife   = 10 * time.Minute
)

// limit is how long the issuer may take to answer.
const limit = 10 * time.Second

// Users signs users in.
type Users struct {
	// Address is the host:port at which the issuer answers, if its name does not resolve.
	Address string
	// CA are patterns of files with certificates to trust besides the system's.
	CA []string
	// SignedIn is called for each user who has signed in; optional.
	SignedIn func(context.Context, Session) error
	Log      *slog.Logger

	issuer string
	oauth  oauth2.Config // without the endpoints
	aead   cipher.AEAD
}

// Session is who has signed in, as the issuer says.
type Session struct {
	Subject string `json:"sub"`
	Name    string `json:"name"`
	Email   string `json:"email"`
}

// attempt is what a browser keeps while its user is at the issuer.
type attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // of PKCE
}

// New reads ISSUER, PUBLIC_URL (as browsers see the program), CLIENT_ID, CLIENT_SECRET_FILE and
// SESSION_KEY_FILE (64 hexadecimal digits). It does not connect.
func New(env *web.Env, log *slog.Logger) (*Users, error) {
	u := &Users{
		Log: log, issuer: env.URL("ISSUER"),
		oauth: oauth2.Config{
			ClientID: env.Text("CLIENT_ID", ""), ClientSecret: string(env.File("CLIENT_SECRET_FILE")),
			RedirectURL: env.URL("PUBLIC_URL") + "/callback", Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
		},
	}
	key := env.File("SESSION_KEY_FILE")
	err := env.Err()
	if err == nil {
		u.aead, err = sealing(key)
	}
	return u, err
}

// Handle adds
//
//	GET  /login     sends the browser to the issuer
//	GET  /callback  takes it back
//	POST /logout    ends the session
func (u *Users) Handle(mux *http.ServeMux) {
	mux.HandleFunc("GET /login", u.login)
	mux.HandleFunc("GET /callback", u.callback)
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, cookie(sessionCookie, "", -1))
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
}

// Session returns who has signed in, or nil.
func (u *Users) Session(r *http.Request) *Session {
	s := &Session{}
	if !u.open(r, sessionCookie, s) {
		return nil
	}
	return s
}

// Check fails unless the issuer answers and is the right one.
func (u *Users) Check(ctx context.Context) error {
	_, _, err := u.provider(ctx)
	return err
}

func (u *Users) login(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	a := attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	_, p, err := u.provider(ctx)
	if err == nil {
		err = u.set(w, attemptCookie, a, attemptLife)
	}
	if err != nil {
		web.Fail(w, u.Log, http.StatusServiceUnavailable, err)
		return
	}
	oauth := u.oauth
	oauth.Endpoint = p.Endpoint()
	http.Redirect(w, r, oauth.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), http.StatusFound)
}

func (u *Users) callback(w http.ResponseWriter, r *http.Request) {
	var a attempt
	begun := u.open(r, attemptCookie, &a)
	http.SetCookie(w, cookie(attemptCookie, "", -1)) // it is good for one answer
	said := r.URL.Query()
	switch {
	case !begun || said.Get("state") != a.State:
		http.Error(w, "This sign-in was begun elsewhere or too long ago: sign in again at /login", http.StatusBadRequest)
		return
	case said.Get("code") == "":
		u.Log.Warn("the issuer rejected a sign-in", "error", said.Get("error"), "description", said.Get("error_description"))
		http.Error(w, "You were not signed in: try again at /login", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	session, err := u.finish(ctx, a, said.Get("code"))
	if err != nil {
		web.Fail(w, u.Log, http.StatusBadGateway, err)
		return
	}
	if u.SignedIn != nil {
		err = u.SignedIn(ctx, session)
	}
	if err == nil {
		err = u.set(w, sessionCookie, session, sessionLife)
	}
	if err != nil {
		web.Fail(w, u.Log, http.StatusServiceUnavailable, err)
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// finish exchanges the code that the issuer gave for what it says about the user.
func (u *Users) finish(ctx context.Context, a attempt, code string) (s Session, err error) {
	ctx, p, err := u.provider(ctx)
	if err != nil {
		return s, err
	}
	oauth := u.oauth
	oauth.Endpoint = p.Endpoint()
	tokens, err := oauth.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return s, fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := p.VerifierContext(ctx, &oidc.Config{ClientID: oauth.ClientID}).Verify(ctx, raw)
	if err != nil {
		return s, fmt.Errorf("verify the ID token: %w", err)
	}
	if token.Nonce != a.Nonce {
		return s, errors.New("verify the ID token: it is of another sign-in")
	}
	err = token.Claims(&s)
	return s, err
}

// provider asks the issuer about itself, and returns a context that reaches it. It asks anew each
// time, for the issuer's certificate may change.
func (u *Users) provider(ctx context.Context) (context.Context, *oidc.Provider, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		return ctx, nil, err
	}
	for _, pattern := range u.CA {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return ctx, nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return ctx, nil, err
			}
			roots.AppendCertsFromPEM(text)
		}
	}
	ctx = oidc.ClientContext(ctx, &http.Client{Timeout: limit, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if u.Address != "" {
				address = u.Address
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}})
	p, err := oidc.NewProvider(ctx, u.issuer)
	if err != nil {
		return ctx, nil, fmt.Errorf("ask the issuer: %w", err)
	}
	return ctx, p, nil
}
