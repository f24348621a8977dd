package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var quiet = slog.New(slog.DiscardHandler)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestTheConfigurationIsReadAndEverythingWrongIsNamed(t *testing.T) {
	values := map[string]string{
		"LISTEN": ":8080", "PUBLIC_URL": "https://portal.example/", "ISSUER": "https://example/dex", "ISSUER_ADDRESS": "gateway:443",
		"CLIENT_ID": "portal", "CLIENT_SECRET_FILE": write(t, "secret", "s3cret\n"), "SESSION_KEY_FILE": write(t, "key", strings.Repeat("0f", 32)),
		"CA_DIRS": "/a:/b", "CLUSTER": "demo", "ADDONS_FILE": write(t, "addons.json", `{"b": "https://b", "a": "https://a"}`),
	}
	got, err := ServerConfigFrom(env(values))
	require.NoError(t, err)
	require.Equal(t, ServerConfig{
		Listen: ":8080", PublicURL: "https://portal.example", SessionKey: Secret(strings.Repeat("0f", 32)),
		Issuer: IssuerConfig{URL: "https://example/dex", Address: "gateway:443", ClientID: "portal", ClientSecret: "s3cret", CA: []string{"/a", "/b"}},
		Shown:  Shown{Cluster: "demo", Addons: []Addon{{"a", "https://a"}, {"b", "https://b"}}},
	}, got)
	require.Equal(t, "(secret)", got.SessionKey.String())

	_, err = ServerConfigFrom(env(nil))
	for _, name := range []string{"LISTEN", "PUBLIC_URL", "ISSUER", "CLIENT_ID", "CLIENT_SECRET_FILE", "SESSION_KEY_FILE", "ADDONS_FILE"} {
		require.ErrorContains(t, err, name+": ")
	}
	require.Equal(t, 2, run(t.Context(), []string{"serve"}, env(nil), io.Discard))
	require.Equal(t, 2, run(t.Context(), []string{"sing"}, env(nil), io.Discard))
	require.Equal(t, 2, run(t.Context(), []string{"load-balancer"}, env(nil), io.Discard))
}

// issuer is an Identity in memory; err is what it answers in place of anything else.
type issuer struct{ err error }

func (i *issuer) Discover(context.Context) error { return i.err }

func (i *issuer) Begin(context.Context) (Attempt, string, error) {
	return Attempt{State: "state", Nonce: "n", Verifier: "v"}, "https://issuer.example/auth", i.err
}

func (i *issuer) Finish(_ context.Context, a Attempt, code string) (Session, error) {
	if code != "good" || a.Verifier != "v" {
		return Session{}, errors.New("no such code")
	}
	return Session{Subject: "1", Name: "user1", Email: "user1@example.com"}, i.err
}

// browser follows no redirect, and keeps cookies.
type browser struct {
	t *testing.T
	*http.Client
	url string
}

func open(t *testing.T, identity Identity) browser {
	t.Helper()
	cookies, err := newSealer(Secret(strings.Repeat("0f", 32)), time.Now)
	require.NoError(t, err)
	s := httptest.NewTLSServer(Handler(identity, cookies, Shown{Cluster: "demo", Addons: []Addon{{"argocd", "https://example/argocd"}}}, quiet))
	t.Cleanup(s.Close)
	client := s.Client()
	client.Jar, err = cookiejar.New(nil)
	require.NoError(t, err)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return browser{t, client, s.URL}
}

func (b browser) get(path string, status int) (string, *http.Response) {
	b.t.Helper()
	res, err := b.Get(b.url + path)
	require.NoError(b.t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	require.Equal(b.t, status, res.StatusCode, string(text))
	return string(text), res
}

func TestAUserSignsInAndOut(t *testing.T) {
	b := open(t, &issuer{})
	text, _ := b.get("/", 200)
	require.Contains(t, text, `href="/login"`)
	require.NotContains(t, text, "argocd")
	_, res := b.get("/login", 302)
	require.Equal(t, "https://issuer.example/auth", res.Header.Get("Location"))
	_, res = b.get("/callback?state=state&code=good", 303)
	require.Equal(t, "/", res.Header.Get("Location"))
	text, _ = b.get("/", 200)
	require.Contains(t, text, "Signed in as <strong>user1</strong> (user1@example.com)")
	require.Contains(t, text, `<a href="https://example/argocd">argocd</a>`)
	res, err := b.PostForm(b.url+"/logout", url.Values{})
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	text, _ = b.get("/", 200)
	require.Contains(t, text, `href="/login"`)
}

func TestASignInThatIsNotOneIsRefused(t *testing.T) {
	b := open(t, &issuer{})
	b.get("/callback?state=state&code=good", 400) // begun elsewhere
	b.get("/login", 302)
	b.get("/callback?state=other&code=good", 400)
	b.get("/login", 302)
	b.get("/callback?state=state&error=access_denied", 403)
	b.get("/login", 302)
	b.get("/callback?state=state&code=bad", 502)
	text, _ := b.get("/", 200)
	require.Contains(t, text, `href="/login"`)
}

func TestThePortalIsUnhealthyWithoutItsIssuer(t *testing.T) {
	i := &issuer{err: errors.New("away")}
	b := open(t, i)
	b.get("/livez", 200)
	text, _ := b.get("/healthz", 503)
	require.Equal(t, "the issuer does not answer\n", text)
	b.get("/login", 503)
	i.err = nil
	b.get("/healthz", 200)
}

// TestTheIssuerIsReachedAtItsAddress: under the name that browsers see, with what is to be
// trusted for it.
func TestTheIssuerIsReachedAtItsAddress(t *testing.T) {
	var host string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host = r.Host
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": "https://example.com/dex", "authorization_endpoint": "https://example.com/dex/auth"})
	}))
	t.Cleanup(s.Close)
	i := NewIssuer(IssuerConfig{URL: "https://example.com/dex", Address: s.Listener.Addr().String(), ClientID: "portal"}, "https://portal.example")
	require.ErrorContains(t, i.Discover(t.Context()), "certificate")

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), pemOf(s.Certificate().Raw), 0o600))
	i.cfg.CA = []string{filepath.Join(dir, "missing"), dir}
	require.NoError(t, i.Discover(t.Context()))
	require.Equal(t, "example.com", host)
	a, address, err := i.Begin(t.Context())
	require.NoError(t, err)
	require.Contains(t, address, "https://example.com/dex/auth?")
	require.Contains(t, address, "redirect_uri="+url.QueryEscape("https://portal.example/callback"))
	require.Contains(t, address, "state="+a.State)
}

func pemOf(der []byte) []byte {
	return []byte("-----BEGIN CERTIFICATE-----\n" + base64.StdEncoding.EncodeToString(der) + "\n-----END CERTIFICATE-----\n")
}

// kubernetes is an API server with some objects, by path. It notes what it was sent.
type kubernetes struct {
	objects map[string]string
	sent    []string
}

func (k *kubernetes) cluster(t *testing.T) *Cluster {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method != http.MethodGet {
			text, _ := io.ReadAll(r.Body)
			k.sent = append(k.sent, r.Method+" "+r.URL.Path+" "+string(text))
			_, _ = w.Write([]byte("{}"))
			return
		}
		text, ok := k.objects[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	return &Cluster{URL: s.URL, Client: s.Client(), Token: func() (string, error) { return "token", nil }}
}

// TestServicesOfTheClassGetTheAddressesOfNodesThatAreReady, and no others.
func TestServicesOfTheClassGetTheAddressesOfNodesThatAreReady(t *testing.T) {
	node := func(ip, ready string) string {
		return `{"status": {"addresses": [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "` + ip + `"}], "conditions": [{"type": "Ready", "status": "` + ready + `"}]}}`
	}
	service := func(name, class, ip string) string {
		return `{"metadata": {"namespace": "traefik", "name": "` + name + `"}, "spec": {"type": "LoadBalancer", "loadBalancerClass": "` + class + `"}, "status": {"loadBalancer": {"ingress": [{"ip": "` + ip + `"}]}}}`
	}
	k := &kubernetes{objects: map[string]string{
		"/api/v1/nodes":    `{"items": [` + node("10.0.0.2", "True") + "," + node("10.0.0.3", "False") + `]}`,
		"/api/v1/services": `{"items": [` + service("right", "ours", "10.0.0.2") + "," + service("old", "ours", "10.0.0.9") + "," + service("theirs", "", "10.0.0.9") + `]}`,
	}}
	changed, err := balance(t.Context(), k.cluster(t), "ours", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"traefik/old"}, changed)
	require.Equal(t, []string{`PATCH /api/v1/namespaces/traefik/services/old/status {"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.2"}]}}}`}, k.sent)

	given, err := parseAddresses("192.0.2.1, 2001:db8::1")
	require.NoError(t, err)
	k.sent = nil
	changed, err = balance(t.Context(), k.cluster(t), "ours", given)
	require.NoError(t, err)
	require.Equal(t, []string{"traefik/right", "traefik/old"}, changed)
	require.Contains(t, k.sent[0], `"ingress":[{"ip":"192.0.2.1"},{"ip":"2001:db8::1"}]`)
	_, err = parseAddresses("192.0.2.1,node")
	require.ErrorContains(t, err, `"node"`)
}
