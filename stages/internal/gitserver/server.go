// Package gitserver is a client of the platform's git server, its API and repositories,
// over HTTPS and through an address that may differ from what the server's name resolves
// to.
package gitserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// Server is a git server and an account on it. It is safe for concurrent use.
type Server struct {
	URL      string         // as users see it, "https://gitea.example.org"; the certificate must be for its host
	Address  string         // host:port to dial; empty: the host of URL
	Roots    *x509.CertPool // nil: the system's
	Username string
	Password redact.Value

	planned bool // nothing is written: what would be is an ErrLater
}

// requestTimeout limits one request to the API.
const requestTimeout = 30 * time.Second

// Client returns an HTTP client that dials address for every host, unless address is
// empty, uses no proxy and follows no redirects. Certificates are verified against
// roots; nil: the system's.
func Client(address string, roots *x509.CertPool) *http.Client {
	d := &net.Dialer{Timeout: 10 * time.Second}
	t := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     5 * time.Second,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if address != "" {
				addr = address
			}
			return d.DialContext(ctx, network, addr)
		},
	}
	return &http.Client{
		Transport:     guarded{t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// guarded refuses requests that would change something once it is not certain any more that
// the step's run has the deployment's lock.
type guarded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	reads := r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/git-upload-pack")
	if !reads {
		if err := lock.Guard(r.Context()); err != nil {
			return nil, err
		}
	}
	return g.next.RoundTrip(r)
}

// StatusError is an error response of the API.
type StatusError struct {
	Method, Path string
	Status       int    // HTTP status
	Message      string // the server's, shortened
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s %s answered %d", e.Method, e.Path, e.Status)
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// User returns the login name of the account according to the server.
func (s *Server) User(ctx context.Context) (string, error) {
	var u struct {
		Login string `json:"login"`
	}
	if err := s.api(ctx, http.MethodGet, "/api/v1/user", nil, &u); err != nil {
		return "", err
	}
	return u.Login, nil
}

// EnsureRepository creates the account's repository name if it does not exist. It is
// private, empty, and its default branch is main.
func (s *Server) EnsureRepository(ctx context.Context, name, description string) (created bool, err error) {
	path := "/api/v1/repos/" + url.PathEscape(s.Username) + "/" + url.PathEscape(name)
	err = s.api(ctx, http.MethodGet, path, nil, nil)
	if err == nil {
		return false, nil
	}
	if !isStatus(err, http.StatusNotFound) {
		return false, err
	}
	if s.planned {
		return false, plan.Later("make the repository %s", name)
	}
	body := map[string]any{
		"name": name, "description": description, "private": true,
		"default_branch": "main", "auto_init": false,
	}
	err = s.api(ctx, http.MethodPost, "/api/v1/user/repos", body, nil)
	if isStatus(err, http.StatusConflict) { // created concurrently
		return false, nil
	}
	return err == nil, err
}

// EnsureReader lets user read, and not write, the account's repository name.
func (s *Server) EnsureReader(ctx context.Context, name, user string) error {
	path := "/api/v1/repos/" + url.PathEscape(s.Username) + "/" + url.PathEscape(name) + "/collaborators/" + url.PathEscape(user)
	var now struct {
		Permission string `json:"permission"`
	}
	err := s.api(ctx, http.MethodGet, path+"/permission", nil, &now)
	if err != nil && !isStatus(err, http.StatusNotFound) {
		return err
	}
	if err == nil && now.Permission == "read" {
		return nil
	}
	if s.planned {
		return plan.Later("let %s read the repository %s", user, name)
	}
	return s.api(ctx, http.MethodPut, path, map[string]any{"permission": "read"}, nil)
}

// ErrSignUpOpen means that anybody can create an account.
var ErrSignUpOpen = errors.New("anybody can sign up")

// CheckSignUpRefused tries to create an account without being logged in, as the sign-up
// form does, and checks whether it exists afterwards. s must be allowed to see users.
// It returns ErrSignUpOpen if the attempt succeeded.
func (s *Server) CheckSignUpRefused(ctx context.Context) error {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return fmt.Errorf("generate a user name: %w", err)
	}
	name := "sign-up-test-" + hex.EncodeToString(b[:])
	secret := "Aa1!" + hex.EncodeToString(b[:])
	form := url.Values{"user_name": {name}, "email": {name + "@example.invalid"}, "password": {secret}, "retype": {secret}}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/user/sign_up", strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("ask for an account: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := s.client().Do(req)
	if err != nil {
		return fmt.Errorf("ask for an account: %w", err)
	}
	drain(resp)
	err = s.api(ctx, http.MethodGet, "/api/v1/users/"+name, nil, nil)
	switch {
	case isStatus(err, http.StatusNotFound):
		return nil
	case err == nil:
		return ErrSignUpOpen
	default:
		return fmt.Errorf("check that sign-up is refused: %w", err)
	}
}

// api sends in as JSON and decodes the response into out; both may be nil.
func (s *Server) api(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, body)
	if err != nil {
		return fmt.Errorf("ask the git server: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.SetBasicAuth(s.Username, string(s.Password.Reveal()))
	resp, err := s.client().Do(req)
	if err != nil {
		return fmt.Errorf("ask the git server: %w", err)
	}
	defer drain(resp)
	if resp.StatusCode/100 != 2 {
		return &StatusError{Method: method, Path: path, Status: resp.StatusCode, Message: messageOf(resp.Body)}
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, bounded.Generated)).Decode(out); err != nil {
		return fmt.Errorf("read the git server's response to %s %s: %w", method, path, err)
	}
	return nil
}

// client returns a new client for each use, as a step makes only a few requests.
func (s *Server) client() *http.Client { return Client(s.Address, s.Roots) }

func isStatus(err error, status int) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && e.Status == status
}

// messageOf returns the message of an error response, at most 200 characters.
func messageOf(r io.Reader) string {
	b, err := io.ReadAll(io.LimitReader(r, 4096))
	if err != nil {
		return ""
	}
	var m struct {
		Message string `json:"message"`
	}
	text := string(b)
	if json.Unmarshal(b, &m) == nil && m.Message != "" {
		text = m.Message
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return text
}

// drain reads the rest of the body, up to a limit, and closes it.
func drain(resp *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	_ = resp.Body.Close()
}
