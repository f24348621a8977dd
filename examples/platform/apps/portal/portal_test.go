package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dexidp/dex/api/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/slipway-sh/slipway/examples/platform/apps/signin"
)

func TestAStrangerSeesNoAddon(t *testing.T) {
	h := handler(&signin.Users{}, "demo", map[string]string{"argocd": "https://example/argocd"}, slog.New(slog.DiscardHandler))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	require.Contains(t, w.Body.String(), `<a href="/login">Sign in</a>`)
	require.NotContains(t, w.Body.String(), "argocd")
}

// kubernetes is an API server with some objects, by path. It notes what it was sent.
type kubernetes struct {
	objects map[string]string
	sent    []string
}

func (k *kubernetes) cluster(t *testing.T) *cluster {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method != http.MethodGet {
			text, _ := io.ReadAll(r.Body)
			k.sent = append(k.sent, r.Method+" "+r.URL.Path+" "+string(text))
			return
		}
		text, ok := k.objects[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("token\n"), 0o600))
	return &cluster{url: s.URL, client: s.Client(), token: token}
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

// dex is Dex's API in memory.
type dex struct {
	api.DexClient
	client *api.Client
}

func (d *dex) CreateClient(_ context.Context, r *api.CreateClientReq, _ ...grpc.CallOption) (*api.CreateClientResp, error) {
	d.client = r.Client
	return &api.CreateClientResp{}, nil
}

func (d *dex) DeleteClient(context.Context, *api.DeleteClientReq, ...grpc.CallOption) (*api.DeleteClientResp, error) {
	return &api.DeleteClientResp{NotFound: d.client == nil}, nil
}

// TestTheClientIsKeptInStep: a second time changes no secret, and the address of the portal
// follows.
func TestTheClientIsKeptInStep(t *testing.T) {
	d, k := &dex{}, &kubernetes{objects: map[string]string{}}
	const object = "/api/v1/namespaces/dex/secrets/clients"
	require.NoError(t, register(t.Context(), d, k.cluster(t), "https://a.example", object))
	require.Equal(t, []string{"https://a.example/callback"}, d.client.RedirectUris)
	require.Len(t, k.sent, 1)
	text, ok := strings.CutPrefix(k.sent[0], "POST /api/v1/namespaces/dex/secrets ")
	require.True(t, ok, k.sent[0])
	var made struct{ StringData map[string]string }
	require.NoError(t, json.Unmarshal([]byte(text), &made))
	secret := made.StringData["portal"]
	require.Equal(t, d.client.Secret, secret)
	require.GreaterOrEqual(t, len(secret), 26)

	k.objects[object] = `{"data": {"portal": "` + base64.StdEncoding.EncodeToString([]byte(secret)) + `"}}`
	require.NoError(t, register(t.Context(), d, k.cluster(t), "https://b.example", object))
	require.Equal(t, secret, d.client.Secret)
	require.Equal(t, []string{"https://b.example/callback"}, d.client.RedirectUris)
	require.Len(t, k.sent, 1)

	k.objects[object] = `{"data": {}}`
	require.ErrorContains(t, register(t.Context(), d, k.cluster(t), "https://b.example", object), "it has no key portal")
}
