package signin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dexidp/dex/api/v2"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc"

	"github.com/slipway-sh/slipway/examples/platform/apps/web"
)

const issuerURL = "https://example.com/dex" // whose certificate httptest has

// provider is an issuer with one client, console, and one user, who is signed in already.
type provider struct {
	*httptest.Server
	key    *ecdsa.PrivateKey
	asked  url.Values     // by the last visit to the authorization endpoint
	claims map[string]any // that differ from the right ones
	down   bool
}

func startProvider(t *testing.T) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p := &provider{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/dex/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		if p.down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": issuerURL, "authorization_endpoint": issuerURL + "/auth", "token_endpoint": issuerURL + "/token", "jwks_uri": issuerURL + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256"},
		})
	})
	mux.HandleFunc("/dex/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/dex/token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		id, secret, _ := r.BasicAuth()
		challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if id != "console" || secret != "cl1ent" || r.FormValue("code") != "c0de" || base64.RawURLEncoding.EncodeToString(challenge[:]) != p.asked.Get("code_challenge") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error": "invalid_grant"}`))
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "a", "token_type": "bearer", "id_token": p.token()})
	})
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) token() string {
	claims := map[string]any{
		"iss": issuerURL, "aud": "console", "sub": "s", "name": "Ada", "email": "ada@slipway.test",
		"nonce": p.asked.Get("nonce"), "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
	}
	maps.Copy(claims, p.claims)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.key}, (&jose.SignerOptions{}).WithHeader("kid", "1"))
	if err != nil {
		return err.Error()
	}
	raw, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		return err.Error()
	}
	return raw
}

// visitor is a browser at a program whose users sign in at the provider. It follows no redirect.
type visitor struct {
	*testing.T
	*http.Client
	url      string
	users    *Users
	signedIn []Session
}

func visit(t *testing.T, p *provider) *visitor {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	settings := map[string]string{
		"ISSUER": issuerURL, "PUBLIC_URL": "https://console.test/", "CLIENT_ID": "console",
		"CLIENT_SECRET_FILE": write("secret", "cl1ent"), "SESSION_KEY_FILE": write("key", strings.Repeat("0f", 32)),
	}
	v := &visitor{T: t}
	var log strings.Builder
	code := web.Run(t.Context(), nil, func(name string) string { return settings[name] }, &log, map[string]web.Command{
		"": func(_ context.Context, env *web.Env, _ *slog.Logger) (err error) {
			v.users, err = New(env, slog.New(slog.DiscardHandler))
			return err
		},
	})
	require.Zero(t, code, log.String())
	v.users.Address = p.Listener.Addr().String()
	write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})))
	v.users.CA = []string{"/missing", filepath.Join(dir, "*.crt")}
	v.users.SignedIn = func(_ context.Context, s Session) error {
		v.signedIn = append(v.signedIn, s)
		return nil
	}
	mux := http.NewServeMux()
	v.users.Handle(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { _ = json.NewEncoder(w).Encode(v.users.Session(r)) })
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	v.url, v.Client = server.URL, server.Client()
	v.Jar, _ = cookiejar.New(nil)
	v.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return v
}

func (v *visitor) see(path string, status int) (string, *http.Response) {
	v.Helper()
	r, err := v.Get(v.url + path)
	require.NoError(v, err)
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	require.NoError(v, err)
	require.Equal(v, status, r.StatusCode, string(text))
	return string(text), r
}

// login begins to sign in, and returns what the provider's page would send the browser back with.
func (v *visitor) login(p *provider) url.Values {
	v.Helper()
	_, r := v.see("/login", 302)
	to, err := r.Location()
	require.NoError(v, err)
	require.Equal(v, issuerURL+"/auth", "https://"+to.Host+to.Path)
	p.asked = to.Query()
	require.Equal(v, []string{"code", "openid profile email", "https://console.test/callback", "S256"},
		[]string{p.asked.Get("response_type"), p.asked.Get("scope"), p.asked.Get("redirect_uri"), p.asked.Get("code_challenge_method")})
	return url.Values{"state": {p.asked.Get("state")}, "code": {"c0de"}}
}

func TestAUserSignsInAndOut(t *testing.T) {
	p := startProvider(t)
	v := visit(t, p)
	none, _ := v.see("/", 200)
	require.Equal(t, "null\n", none)
	v.see("/callback?"+v.login(p).Encode(), 303)
	page, _ := v.see("/", 200)
	require.JSONEq(t, `{"sub": "s", "name": "Ada", "email": "ada@slipway.test"}`, page)
	require.Equal(t, []Session{{"s", "Ada", "ada@slipway.test"}}, v.signedIn)
	r, err := v.PostForm(v.url+"/logout", nil)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	page, _ = v.see("/", 200)
	require.Equal(t, none, page)
}

func TestSignInsThatAreWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		claims map[string]any
		change func(v *visitor, p *provider, back url.Values)
		status int
	}{
		"begun elsewhere":  {change: func(v *visitor, _ *provider, _ url.Values) { v.Jar, _ = cookiejar.New(nil) }, status: 400},
		"another state":    {change: func(_ *visitor, _ *provider, back url.Values) { back.Set("state", "other") }, status: 400},
		"rejected":         {change: func(_ *visitor, _ *provider, back url.Values) { back.Del("code"); back.Set("error", "access_denied") }, status: 403},
		"another code":     {change: func(_ *visitor, _ *provider, back url.Values) { back.Set("code", "other") }, status: 502},
		"another verifier": {change: func(_ *visitor, p *provider, _ url.Values) { p.asked.Set("code_challenge", "other") }, status: 502},
		"another secret":   {change: func(v *visitor, _ *provider, _ url.Values) { v.users.oauth.ClientSecret = "other" }, status: 502},
		"another key": {change: func(_ *visitor, p *provider, _ url.Values) {
			p.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		}, status: 502},
		"another nonce":  {claims: map[string]any{"nonce": "other"}, status: 502},
		"no nonce":       {claims: map[string]any{"nonce": ""}, status: 502},
		"another client": {claims: map[string]any{"aud": "other"}, status: 502},
		"another issuer": {claims: map[string]any{"iss": "https://other.test"}, status: 502},
		"too old":        {claims: map[string]any{"exp": 1}, status: 502},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvider(t)
			p.claims = tc.claims
			v := visit(t, p)
			back := v.login(p)
			if tc.change != nil {
				tc.change(v, p, back)
			}
			v.see("/callback?"+back.Encode(), tc.status)
			page, _ := v.see("/", 200)
			require.Equal(t, "null\n", page)
			require.Empty(t, v.signedIn)
		})
	}
}

func TestAnIssuerThatIsAwayOrNotTrusted(t *testing.T) {
	p := startProvider(t)
	v := visit(t, p)
	p.down = true
	v.see("/login", 503)
	p.down = false
	require.NoError(t, v.users.Check(t.Context()))
	v.users.CA = nil
	require.ErrorContains(t, v.users.Check(t.Context()), "certificate")
}

func TestACookieIsReadByItsMaker(t *testing.T) {
	key, err := sealing(web.Secret(strings.Repeat("0f", 32)))
	require.NoError(t, err)
	other, err := sealing(web.Secret(strings.Repeat("f0", 32)))
	require.NoError(t, err)
	u, stranger := &Users{aead: key}, &Users{aead: other}
	made := func(life time.Duration) *http.Cookie {
		w := httptest.NewRecorder()
		require.NoError(t, u.set(w, sessionCookie, Session{Name: "Ada Lovelace"}, life))
		return w.Result().Cookies()[0]
	}
	reads := func(u *Users, name string, c *http.Cookie) (got Session, ok bool) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.AddCookie(c)
		return got, u.open(r, name, &got)
	}
	c := made(time.Hour)
	require.True(t, c.Secure && c.HttpOnly && c.SameSite == http.SameSiteLaxMode && c.MaxAge == 3600, "%+v", c)
	_, ok := reads(u, sessionCookie, c)
	require.True(t, ok)
	_, ok = reads(stranger, sessionCookie, c)
	require.False(t, ok, "it has another key")
	_, ok = reads(u, sessionCookie, made(-time.Second))
	require.False(t, ok, "it is too old")
	renamed := *c
	renamed.Name = attemptCookie
	_, ok = reads(u, attemptCookie, &renamed)
	require.False(t, ok, "it is another one")
	changed := *c
	changed.Value = c.Value[:20] + map[bool]string{true: "A", false: "B"}[c.Value[20] != 'A'] + c.Value[21:]
	_, ok = reads(u, sessionCookie, &changed)
	require.False(t, ok, "somebody changed it")

	for _, short := range []web.Secret{"", "s3cret", web.Secret(strings.Repeat("x", 64))} {
		_, err := sealing(short)
		require.EqualError(t, err, "SESSION_KEY_FILE: want 64 hexadecimal digits")
	}
}

// passwords is Dex's API in memory.
type passwords struct {
	api.DexClient
	all map[string]*api.Password
}

func (p passwords) CreatePassword(_ context.Context, r *api.CreatePasswordReq, _ ...grpc.CallOption) (*api.CreatePasswordResp, error) {
	if p.all[r.Password.Email] != nil {
		return &api.CreatePasswordResp{AlreadyExists: true}, nil
	}
	p.all[r.Password.Email] = r.Password
	return &api.CreatePasswordResp{}, nil
}

func (p passwords) UpdatePassword(_ context.Context, r *api.UpdatePasswordReq, _ ...grpc.CallOption) (*api.UpdatePasswordResp, error) {
	p.all[r.Email].Hash = r.NewHash
	return &api.UpdatePasswordResp{}, nil
}

func TestAUserIsMadeOnceAndThePasswordFollows(t *testing.T) {
	dex := passwords{all: map[string]*api.Password{}}
	u := User{ID: "id-1", Name: "admin", Email: "admin@slipway.test", Password: "s3cret"}
	require.NoError(t, Put(t.Context(), dex, u))
	u.ID, u.Password = "id-2", "0ther"
	require.NoError(t, Put(t.Context(), dex, u))
	require.Len(t, dex.all, 1)
	require.Equal(t, "id-1", dex.all[u.Email].UserId, "who the user is never changes")
	require.NoError(t, bcrypt.CompareHashAndPassword(dex.all[u.Email].Hash, []byte("0ther")))
	u.Password = web.Secret(strings.Repeat("x", 73))
	err := Put(t.Context(), dex, u)
	require.ErrorContains(t, err, "hash the password")
	require.NotContains(t, err.Error(), "xxx")
}
