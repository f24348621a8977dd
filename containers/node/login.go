package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// account is one of a registry, in memory only.
type account struct {
	username, password string
	refresh            string // a token in place of a password, with which others are got
	bearer             string // a token as it is
}

// String hides it.
func (*account) String() string { return "***" }

// GoString hides it from %#v.
func (*account) GoString() string { return "***" }

// readAccount reads the account of a registry, a URL, from a file as docker's config.json;
// there is none without a file.
func readAccount(file, registry string) (*account, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the registry's account: %w", err)
	}
	var config struct {
		Auths map[string]struct {
			Username      string `json:"username"`
			Password      string `json:"password"`
			Auth          string `json:"auth"` // user:password, in base64
			IdentityToken string `json:"identitytoken"`
			RegistryToken string `json:"registrytoken"`
		} `json:"auths"`
	}
	if json.Unmarshal(text, &config) != nil { // whose error may quote it
		return nil, fmt.Errorf("read the registry's account: %s is no configuration of docker", file)
	}
	_, host, _ := strings.Cut(registry, "://")
	host, _, _ = strings.Cut(host, "/")
	found, ok := config.Auths[host]
	if !ok {
		return nil, fmt.Errorf("read the registry's account: %s has no account for %s", file, host)
	}
	a := &account{username: found.Username, password: found.Password, refresh: found.IdentityToken, bearer: found.RegistryToken}
	if a.password == "" && found.Auth != "" {
		pair, err := base64.StdEncoding.DecodeString(found.Auth)
		if err != nil {
			return nil, fmt.Errorf("read the registry's account: that for %s is no base64", host)
		}
		a.username, a.password, _ = strings.Cut(string(pair), ":")
	}
	return a, nil
}

// takeAway keeps what runs in the container from reading a mounted file, which was read.
func takeAway(file string) error {
	err := unix.Unmount(file, unix.MNT_DETACH)
	if file == "" || err == nil || errors.Is(err, unix.EINVAL) { // it is no mount
		return nil
	}
	return fmt.Errorf("unmount %s: %w", file, err)
}

var challengePart = regexp.MustCompile(`([a-z]+)="([^"]*)"`)

// authorization is what a registry wants to see, as its challenge says. Without an account it
// is a token of somebody without one.
func (f *forwarder) authorization(ctx context.Context, challenge string) (string, error) {
	kind, rest, _ := strings.Cut(challenge, " ")
	switch {
	case strings.EqualFold(kind, "Basic") && f.account != nil && f.account.password != "":
		return "Basic " + basic(f.account), nil
	case !strings.EqualFold(kind, "Bearer"):
		return "", fmt.Errorf("it asks for %q, and the node has no password", kind)
	case f.account != nil && f.account.bearer != "":
		return "Bearer " + f.account.bearer, nil
	}
	token, err := f.token(ctx, rest)
	return "Bearer " + token, err
}

func basic(a *account) string {
	return base64.StdEncoding.EncodeToString([]byte(a.username + ":" + a.password))
}

// token asks for a token, as a registry's challenge says.
func (f *forwarder) token(ctx context.Context, challenge string) (string, error) {
	query, realm := url.Values{}, ""
	for _, m := range challengePart.FindAllStringSubmatch(challenge, -1) {
		switch m[1] {
		case "realm":
			realm = m[2]
		case "service", "scope":
			query.Set(m[1], m[2])
		}
	}
	at, err := url.Parse(realm)
	if err != nil || at.Host == "" {
		return "", fmt.Errorf("%q is no address of tokens", realm)
	}
	if f.account != nil && at.Scheme != "https" && strings.HasPrefix(f.base, "https:") {
		return "", fmt.Errorf("%s has no TLS, so that it gets no account", at.Redacted())
	}
	request, err := f.tokenRequest(ctx, at, query)
	if err != nil {
		return "", err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return "", err
	}
	defer release(response.Body)
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", at.Redacted(), response.Status)
	}
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxManifest)).Decode(&answer); err != nil {
		return "", err
	}
	if answer.Token != "" {
		return answer.Token, nil
	}
	return answer.AccessToken, nil
}

func (f *forwarder) tokenRequest(ctx context.Context, at *url.URL, query url.Values) (*http.Request, error) {
	if f.account != nil && f.account.refresh != "" {
		query.Set("grant_type", "refresh_token")
		query.Set("refresh_token", f.account.refresh)
		query.Set("client_id", "slipway-node")
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), strings.NewReader(query.Encode()))
		if err == nil {
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return request, err
	}
	for key, values := range at.Query() {
		query[key] = append(query[key], values...)
	}
	with := *at
	with.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, with.String(), nil)
	if err == nil && f.account != nil {
		request.Header.Set("Authorization", "Basic "+basic(f.account))
	}
	return request, err
}
