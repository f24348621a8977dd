package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const issuerURL = "https://example.com/dex"

// idTokens issues ID tokens with these claims, to whoever shows the code and the verifier.
type idTokens struct {
	key      *rsa.PrivateKey // that signs
	shown    rsa.PublicKey
	claims   map[string]any
	verifier string
}

// issuer is one that issues them, and what a portal is to it.
func (i *idTokens) issuer(t *testing.T) *Issuer {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	mux := http.NewServeMux()
	answer := func(path string, with func(*http.Request) any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(with(r))
		})
	}
	answer("/dex/.well-known/openid-configuration", func(*http.Request) any {
		return map[string]any{
			"issuer": issuerURL, "authorization_endpoint": issuerURL + "/auth", "token_endpoint": issuerURL + "/token", "jwks_uri": issuerURL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		}
	})
	answer("/dex/keys", func(*http.Request) any {
		key := map[string]string{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k", "n": encode(i.shown.N.Bytes()), "e": encode(big.NewInt(int64(i.shown.E)).Bytes())}
		return map[string]any{"keys": []any{key}}
	})
	answer("/dex/token", func(r *http.Request) any {
		if r.FormValue("code") != "good" || r.FormValue("code_verifier") != i.verifier {
			return map[string]any{"error": "invalid_grant"}
		}
		claims, err := json.Marshal(i.claims)
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		signed := encode([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + encode(claims)
		sum := sha256.Sum256([]byte(signed))
		signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		return map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": signed + "." + encode(signature)}
	})
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), pemOf(s.Certificate().Raw), 0o600))
	return NewIssuer(IssuerConfig{URL: issuerURL, Address: s.Listener.Addr().String(), ClientID: "portal", CA: []string{dir}}, "https://portal.example")
}

// TestATokenIsOfThisSignIn, for this portal, by this issuer, and still valid.
func TestATokenIsOfThisSignIn(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*idTokens)
		code   string
		says   string
	}{
		"it is":              {func(*idTokens) {}, "good", ""},
		"another nonce":      {func(i *idTokens) { i.claims["nonce"] = "replayed" }, "good", "it is of another sign-in"},
		"no nonce":           {func(i *idTokens) { delete(i.claims, "nonce") }, "good", "it is of another sign-in"},
		"for another client": {func(i *idTokens) { i.claims["aud"] = "console" }, "good", "verify the ID token"},
		"by another issuer":  {func(i *idTokens) { i.claims["iss"] = "https://example.com/other" }, "good", "verify the ID token"},
		"too old":            {func(i *idTokens) { i.claims["exp"] = time.Now().Add(-time.Hour).Unix() }, "good", "verify the ID token"},
		"another code":       {func(*idTokens) {}, "bad", "exchange the code"},
		"another's verifier": {func(i *idTokens) { i.verifier = "another's" }, "good", "exchange the code"},
		"signed by others":   {func(i *idTokens) { i.shown = other.PublicKey }, "good", "verify the ID token"},
	} {
		t.Run(name, func(t *testing.T) {
			i := &idTokens{key: key, shown: key.PublicKey}
			portal := i.issuer(t)
			a, address, err := portal.Begin(t.Context())
			require.NoError(t, err)
			to, err := url.Parse(address)
			require.NoError(t, err)
			require.Equal(t, "S256", to.Query().Get("code_challenge_method"))
			i.verifier = a.Verifier
			i.claims = map[string]any{
				"iss": issuerURL, "aud": "portal", "sub": "1", "exp": time.Now().Add(time.Hour).Unix(), "nonce": to.Query().Get("nonce"),
				"name": "user1", "email": "user1@example.com",
			}
			c.change(i)
			s, err := portal.Finish(t.Context(), a, c.code)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, Session{Subject: "1", Name: "user1", Email: "user1@example.com"}, s)
		})
	}
}
