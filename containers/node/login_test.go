package main

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/opencontainers/go-digest"
	"github.com/stretchr/testify/require"
)

// guarded is a registry with TLS that wants an account: basic, or a token that is got with one.
type guarded struct {
	server *httptest.Server
	basic  bool
	status int      // in place of every answer; 0: none
	tokens []string // how they were asked for
}

const (
	guardedImage = `{"layers":[]}`
	guardedLogin = "puller:r1ght:password"
)

func startGuarded(t *testing.T, basic bool) *guarded {
	t.Helper()
	g := &guarded{basic: basic}
	g.server = httptest.NewTLSServer(http.HandlerFunc(g.serve))
	t.Cleanup(g.server.Close)
	return g
}

func (g *guarded) serve(w http.ResponseWriter, r *http.Request) {
	want := "Bearer of-the-account"
	challenge := fmt.Sprintf(`Bearer realm="%s/token?from=test",service="registry",scope="repository:team/redis:pull"`, g.server.URL)
	if g.basic {
		want, challenge = "Basic "+base64.StdEncoding.EncodeToString([]byte(guardedLogin)), `Basic realm="registry"`
	}
	switch {
	case g.status != 0:
		w.WriteHeader(g.status)
	case r.URL.Path == "/token":
		user, password, _ := r.BasicAuth()
		g.tokens = append(g.tokens, r.Method+" "+r.FormValue("service")+" "+r.FormValue("grant_type"))
		if user+":"+password != guardedLogin && r.FormValue("refresh_token") != "an identity" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"access_token":"of-the-account"}`)
	case r.Header.Get("Authorization") != want:
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/v2/":
	case r.URL.Path == "/v2/team/redis/manifests/"+digest.FromString(guardedImage).String():
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		fmt.Fprint(w, guardedImage)
	default:
		http.NotFound(w, r)
	}
}

// pull asks the node's registry for an image of a guarded one, as containerd does, and tells
// the status line. change may change the way to the registry.
func (g *guarded) pull(t *testing.T, a authn.Authenticator, change func(*http.Transport)) string {
	t.Helper()
	f, err := newForwarder(g.server.URL+"/team", a, nil)
	require.NoError(t, err)
	transport := f.transport.(*http.Transport)
	pool := g.server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	if change != nil {
		change(transport)
	}
	t.Cleanup(transport.CloseIdleConnections)
	node := httptest.NewServer(f.handler())
	t.Cleanup(node.Close)
	r, err := node.Client().Get(node.URL + "/v2/redis/manifests/" + digest.FromString(guardedImage).String() + "?ns=slipway.local")
	require.NoError(t, err)
	defer release(r.Body)
	require.NotContains(t, r.Status, "r1ght")
	return r.Status
}

// written is a file as docker's config.json.
func written(t *testing.T, host, auth string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf(`{"auths":{%q:%s,"other.example.com":{"auth":"eDp5"}}}`, host, auth)), 0o400))
	return file
}

func TestTheNodePullsWithAnAccount(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(guardedLogin))
	wrong := base64.StdEncoding.EncodeToString([]byte("puller:wr0ng"))
	for _, basic := range []bool{true, false} {
		g := startGuarded(t, basic)
		host := strings.TrimPrefix(g.server.URL, "https://")
		login := func(auth string) authn.Authenticator {
			a, err := readAccount(written(t, host, auth), g.server.URL+"/team")
			require.NoError(t, err)
			return a
		}
		require.Equal(t, "200 OK", g.pull(t, login(`{"auth":"`+encoded+`"}`), nil))
		require.Equal(t, "200 OK", g.pull(t, login(`{"username":"puller","password":"r1ght:password"}`), nil))
		for _, a := range []authn.Authenticator{authn.Anonymous, login(`{"auth":"` + wrong + `"}`)} {
			status := g.pull(t, a, nil)
			require.Regexp(t, "^502 .* 401 Unauthorized", status, "what containerd repeats")
			require.NotContains(t, status, "wr0ng")
		}
	}
	g := startGuarded(t, false)
	require.Equal(t, "200 OK", g.pull(t, authn.FromConfig(authn.AuthConfig{IdentityToken: "an identity"}), nil))
	require.Equal(t, "200 OK", g.pull(t, authn.FromConfig(authn.AuthConfig{RegistryToken: "of-the-account"}), nil))
	require.Equal(t, []string{"POST registry refresh_token"}, g.tokens)
}

// TestWhyTheMirrorGivesNothing: the words are those by which the conductor tells the reasons
// apart.
func TestWhyTheMirrorGivesNothing(t *testing.T) {
	g := startGuarded(t, true)
	a := &authn.Basic{Username: "puller", Password: "r1ght:password"}
	require.Contains(t, g.pull(t, a, func(tr *http.Transport) { tr.TLSClientConfig = nil }), "x509: certificate signed by unknown authority")
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	t.Cleanup(between.Close)
	require.Contains(t, g.pull(t, a, func(tr *http.Transport) {
		tr.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(between.URL) }
	}), ": Proxy Authentication Required")
	for status, says := range map[int]string{429: "code 429 Too Many Requests", 503: "code 503 Service Unavailable"} {
		g.status = status
		require.Contains(t, g.pull(t, a, nil), says)
	}
	g.status = 0
	g.server.Close()
	require.Contains(t, g.pull(t, a, nil), "connection refused")
}

func TestAnAccountThatIsNotThere(t *testing.T) {
	none, err := readAccount("", "https://registry.example.com/team")
	require.NoError(t, err)
	require.Equal(t, authn.Anonymous, none)
	for file, says := range map[string]string{
		written(t, "registry.example.com", `{"auth":"eDp5"}`):      "has no account for another.example.com",
		written(t, "another.example.com", `{"auth":"not base64"}`): "is no configuration of docker",
		written(t, "another.example.com", `"n0 account"`):          "is no configuration of docker",
		filepath.Join(t.TempDir(), "absent"):                       "no such file",
	} {
		_, err := readAccount(file, "https://another.example.com/team")
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "n0 account")
	}
	file := written(t, "registry.example.com", `{}`)
	require.NoError(t, takeAway(""))
	require.NoError(t, takeAway(file), "no mount")
	require.FileExists(t, file)
}

// TestAnAccountStaysWithTLS: a registry with TLS gets no account sent without, wherever it sends
// the node for tokens or blobs. It may keep blobs in a store without TLS.
func TestAnAccountStaysWithTLS(t *testing.T) {
	asked := false
	open := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked = true
		if sent := r.Header.Get("Authorization"); sent != "" {
			t.Error("sent: " + sent)
		}
	}))
	t.Cleanup(open.Close)
	challenge := fmt.Sprintf(`Bearer realm="%s/token",service="x"`, open.URL)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case challenge != "":
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path != "/v2/":
			http.Redirect(w, r, open.URL+"/blob", http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(server.Close)
	f, err := newForwarder(server.URL, &authn.Basic{Username: "x", Password: "y"}, nil)
	require.NoError(t, err)
	f.transport = server.Client().Transport
	_, err = f.request(t.Context(), http.MethodGet, "redis", "blobs/x", http.Header{})
	require.ErrorContains(t, err, "not allowed for a secure registry")
	require.False(t, asked)
	challenge = ""
	response, err := f.request(t.Context(), http.MethodGet, "redis", "blobs/x", http.Header{})
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.True(t, asked)
}
