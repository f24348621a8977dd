package registries

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// loggedIn is a home in which docker login has written an account for a host.
func loggedIn(t *testing.T, text string) (file string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DOCKER_AUTH_CONFIG"} {
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name))
	}
	file = filepath.Join(home, ".docker", "config.json")
	t.Setenv("DOCKER_CONFIG", filepath.Dir(file)) // docker's library finds the home directory once
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestTheAccountOfDockerLogin(t *testing.T) {
	const login = `{"auths":{"registry.example.com:5000":{"auth":"cHVsbGVyOnIxZ2h0"},"token.example.com":{"identitytoken":"an identity"}}}` // puller:r1ght
	file := loggedIn(t, login)
	for _, given := range []string{"", file} {
		a, err := Find(t.Context(), given, "192.0.2.1:5000", "registry.example.com:5000")
		require.NoError(t, err)
		text, err := a.Config()
		require.NoError(t, err)
		var is struct {
			Auths map[string]map[string]string `json:"auths"`
		}
		require.NoError(t, json.Unmarshal(text.Reveal(), &is))
		require.Equal(t, map[string]map[string]string{"192.0.2.1:5000": {"username": "puller", "password": "r1ght", "auth": "cHVsbGVyOnIxZ2h0"}}, is.Auths,
			"the node knows the registry by that name")
		require.NoError(t, a.ForKubelet())
		none, err := Find(t.Context(), given, "other.example.com", "registry.example.com")
		require.NoError(t, err)
		require.Nil(t, none, "the port is another")

		token, err := Find(t.Context(), given, "token.example.com")
		require.NoError(t, err)
		require.ErrorIs(t, token.ForKubelet(), &fault.Fault{Code: CodeAccount})
		shown := fmt.Sprintf("%v %+v %#v %s", a, a, a, *a)
		require.NotContains(t, shown, "r1ght")
		require.NotContains(t, shown, "cHVsbGVy")
	}
}

// TestAFileIsPreferred to what the environment says, and may say that there is no account.
func TestAFileIsPreferred(t *testing.T) {
	file := loggedIn(t, `{"auths":{"registry.example.com":{"auth":"cHVsbGVyOnIxZ2h0"}}}`)
	t.Setenv("DOCKER_AUTH_CONFIG", `{"auths":{"registry.example.com":{"auth":"cHVzaGVyOndyMG5n"}}}`) // pusher:wr0ng
	a, err := Find(t.Context(), file, "registry.example.com")
	require.NoError(t, err)
	require.Equal(t, "puller", a.auth.Username)
	none := filepath.Join(t.TempDir(), "none.json")
	require.NoError(t, os.WriteFile(none, []byte("{}"), 0o600))
	a, err = Find(t.Context(), none, "registry.example.com")
	require.NoError(t, err)
	require.Nil(t, a)
}

// TestWhatAProgramSays of the password that it fails to give is not told.
func TestWhatAProgramSays(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "docker-credential-leaks"), []byte("#!/bin/sh\necho '{\"Username\":\"puller\",\"Secret\":\"r1ght\"} is locked'\nexit 1\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	text := `{"credHelpers":{"registry.example.com":"leaks"}}`
	for _, given := range []string{"", loggedIn(t, text)} {
		_, err := Find(t.Context(), given, "registry.example.com")
		require.ErrorIs(t, err, &fault.Fault{Code: CodeAccount})
		require.ErrorContains(t, err, "is locked")
		require.NotContains(t, err.Error(), "r1ght")
	}
}

func TestADigestTellsAccountsApart(t *testing.T) {
	digest := func(password string) string {
		file := loggedIn(t, fmt.Sprintf(`{"auths":{"registry.example.com":{"username":"puller","password":%q}}}`, password))
		a, err := Find(t.Context(), file, "registry.example.com")
		require.NoError(t, err)
		d, err := a.Digest()
		require.NoError(t, err)
		require.NotContains(t, d, password)
		return d
	}
	require.Equal(t, digest("r1ght"), digest("r1ght"))
	require.NotEqual(t, digest("r1ght"), digest("wr0ng"))
}

func TestAnAccountThatCannotBeRead(t *testing.T) {
	for text, fix := range map[string]string{
		`{"auths":{"registry.example.com":{"auth":"r1ght"}}}`: "give a file as docker's config.json",
		`r1ght`: "give a file as docker's config.json",
		`{"auths":{"registry.example.com":{}},"credsStore":"of-a-test"}`: "(docker login registry.example.com), or give a file",
	} {
		_, err := Find(t.Context(), loggedIn(t, text), "registry.example.com")
		require.ErrorIs(t, err, &fault.Fault{Code: CodeAccount})
		require.NotContains(t, err.Error(), "r1ght")
		f, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, f.Fix, fix)
	}
	_, err := Find(t.Context(), filepath.Join(t.TempDir(), "absent"), "registry.example.com")
	require.ErrorIs(t, err, &fault.Fault{Code: CodeAccount})
}

// TestAskAsANodeDoes asks a registry with TLS, an authority of its own and accounts.
func TestAskAsANodeDoes(t *testing.T) {
	real := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	status := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch user, password, _ := r.BasicAuth(); {
		case status != 0:
			w.WriteHeader(status)
		case user+":"+password != "puller:r1ght":
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			real.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "https://")
	trusting := server.Client().Transport
	image, err := random.Image(100, 1)
	require.NoError(t, err)
	digest, err := image.Digest()
	require.NoError(t, err)
	ref, err := name.NewDigest(host + "/team/pause@" + digest.String())
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, image, remote.WithTransport(trusting), remote.WithAuth(&authn.Basic{Username: "puller", Password: "r1ght"})))
	login := func(pair string) string {
		file := filepath.Join(t.TempDir(), "config.json")
		text := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(pair)))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	right, url := login("puller:r1ght"), server.URL+"/team/pause@"+digest.String()
	require.NoError(t, Probe(t.Context(), url, right, trusting))
	for what, c := range map[string]struct {
		url, file string
		next      http.RoundTripper
		status    int
		code      fault.Code
	}{
		"no account":      {url, "", trusting, 0, imageref.CodeLogin},
		"wrong password":  {url, login("puller:wr0ng"), trusting, 0, imageref.CodeLogin},
		"not trusted":     {url, right, http.DefaultTransport, 0, imageref.CodeCertificate},
		"another image":   {server.URL + "/team/other@" + digest.String(), right, trusting, 0, imageref.CodeNoImage},
		"too often":       {url, right, trusting, http.StatusTooManyRequests, imageref.CodeLimit},
		"cannot now":      {url, right, trusting, http.StatusServiceUnavailable, imageref.CodeUnreachable},
		"nothing listens": {"https://127.0.0.1:1/team/pause@" + digest.String(), right, trusting, 0, imageref.CodeUnreachable},
	} {
		t.Run(what, func(t *testing.T) {
			status = c.status
			defer func() { status = 0 }()
			err := Probe(t.Context(), c.url, c.file, c.next)
			require.ErrorIs(t, err, &fault.Fault{Code: c.code}, "%v", err)
			require.NotContains(t, err.Error(), "wr0ng")
			f, _ := errors.AsType[*fault.Fault](err)
			require.NotEmpty(t, f.Fix)
		})
	}
}

// silent is a registry that accepts requests and does not answer.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestARegistryThatDoesNotAnswer(t *testing.T) {
	const url = "https://registry.example.com/team/pause@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := Probe(t.Context(), url, "", silent{})
		require.ErrorIs(t, err, &fault.Fault{Code: imageref.CodeUnreachable})
		require.Equal(t, probeLimit, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = Probe(ctx, url, "", silent{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, coded := errors.AsType[*fault.Fault](err)
		require.False(t, coded, "it is not the registry that ended it")
	})
}
