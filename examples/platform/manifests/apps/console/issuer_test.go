package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"
)

// provider is an identity service with one client and one user, who is signed in already.
type provider struct {
	*httptest.Server
	key    *ecdsa.PrivateKey
	asked  url.Values     // by the last request to the authorization endpoint
	claims map[string]any // that differ from the right ones
	down   bool
}

func startProvider(t *testing.T) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p := &provider{key: key}
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		if p.down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		reply(w, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", p.token)
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	return p
}

// visit is what a browser does at an address of the provider; it returns the code.
func (p *provider) visit(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	require.Equal(t, p.URL+"/auth", "https://"+u.Host+u.Path)
	p.asked = u.Query()
	require.Equal(t, "code", p.asked.Get("response_type"))
	require.Equal(t, "openid profile email", p.asked.Get("scope"))
	require.Equal(t, "https://console.test/callback", p.asked.Get("redirect_uri"))
	require.Equal(t, "S256", p.asked.Get("code_challenge_method"))
	return "c0de"
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if id != "console" || secret != "cl1ent" || r.FormValue("code") != "c0de" ||
		base64.RawURLEncoding.EncodeToString(challenge[:]) != p.asked.Get("code_challenge") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error": "invalid_grant"}`))
		return
	}
	claims := map[string]any{
		"iss": p.URL, "aud": "console", "sub": "s", "name": "Ada", "email": "ada@slipway.test",
		"nonce": p.asked.Get("nonce"), "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
	}
	for k, v := range p.claims {
		claims[k] = v
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.key}, (&jose.SignerOptions{}).WithHeader("kid", "1"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	raw, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "a", "token_type": "bearer", "id_token": raw})
}

// issuer is the console's view of the provider.
func (p *provider) issuer(t *testing.T, secret Secret) *Issuer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}), 0o600))
	i, err := NewIssuer(IssuerConfig{URL: p.URL, CA: file, ClientID: "console", ClientSecret: secret}, "https://console.test")
	require.NoError(t, err)
	return i
}

func TestASignInThatIsRight(t *testing.T) {
	p := startProvider(t)
	i := p.issuer(t, "cl1ent")
	require.NoError(t, i.Discover(t.Context()))
	a, address, err := i.Begin(t.Context())
	require.NoError(t, err)
	code := p.visit(t, address)
	require.Equal(t, a.State, p.asked.Get("state"))
	require.Equal(t, a.Nonce, p.asked.Get("nonce"))
	s, err := i.Finish(t.Context(), a, code)
	require.NoError(t, err)
	require.Equal(t, Session{Subject: "s", Name: "Ada", Email: "ada@slipway.test"}, s)

	again, _, err := i.Begin(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, a.State, again.State)
	require.NotEqual(t, a.Nonce, again.Nonce)
	require.NotEqual(t, a.Verifier, again.Verifier)
}

func TestSignInsThatAreWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		claims map[string]any
		secret Secret
		change func(*Attempt)
		want   string
	}{
		"another nonce":    {claims: map[string]any{"nonce": "other"}, want: "another sign-in"},
		"another client":   {claims: map[string]any{"aud": "other"}, want: "verify the ID token"},
		"another issuer":   {claims: map[string]any{"iss": "https://other.test"}, want: "verify the ID token"},
		"too old":          {claims: map[string]any{"exp": 1}, want: "expired"},
		"another verifier": {change: func(a *Attempt) { a.Verifier = "other" }, want: "invalid_grant"},
		"another secret":   {secret: "other", want: "invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvider(t)
			p.claims = tc.claims
			secret := tc.secret
			if secret == "" {
				secret = "cl1ent"
			}
			i := p.issuer(t, secret)
			a, address, err := i.Begin(t.Context())
			require.NoError(t, err)
			code := p.visit(t, address)
			if tc.change != nil {
				tc.change(&a)
			}
			_, err = i.Finish(t.Context(), a, code)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), string(secret))
		})
	}
}

func TestAnIssuerThatIsNotThere(t *testing.T) {
	p := startProvider(t)
	p.down = true
	i := p.issuer(t, "cl1ent")
	require.ErrorContains(t, i.Discover(t.Context()), "ask the issuer")
	_, _, err := i.Begin(t.Context())
	require.ErrorContains(t, err, "ask the issuer")
	p.down = false
	_, _, err = i.Begin(t.Context())
	require.NoError(t, err, "it is found when it is there")
	p.down = true
	require.Error(t, i.Discover(t.Context()), "an issuer that is known can go")
}

func TestAnIssuerThatIsNotTrusted(t *testing.T) {
	p := startProvider(t)
	i, err := NewIssuer(IssuerConfig{URL: p.URL, ClientID: "console", ClientSecret: "cl1ent"}, "https://console.test")
	require.NoError(t, err)
	require.ErrorContains(t, i.Discover(t.Context()), "certificate")

	empty := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(empty, []byte("none"), 0o600))
	_, err = NewIssuer(IssuerConfig{URL: p.URL, CA: empty}, "https://console.test")
	require.ErrorContains(t, err, "holds no certificate")
}
