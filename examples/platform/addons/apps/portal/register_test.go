package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dexidp/dex/api/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc"
)

// dex is Dex's API in memory.
type dex struct {
	api.DexClient
	users   map[string]*api.Password
	clients map[string]*api.Client
}

func (d *dex) VerifyPassword(_ context.Context, r *api.VerifyPasswordReq, _ ...grpc.CallOption) (*api.VerifyPasswordResp, error) {
	u := d.users[r.Email]
	if u == nil {
		return &api.VerifyPasswordResp{NotFound: true}, nil
	}
	return &api.VerifyPasswordResp{Verified: bcrypt.CompareHashAndPassword(u.Hash, []byte(r.Password)) == nil}, nil
}

func (d *dex) CreatePassword(_ context.Context, r *api.CreatePasswordReq, _ ...grpc.CallOption) (*api.CreatePasswordResp, error) {
	d.users[r.Password.Email] = r.Password
	return &api.CreatePasswordResp{}, nil
}

func (d *dex) UpdatePassword(_ context.Context, r *api.UpdatePasswordReq, _ ...grpc.CallOption) (*api.UpdatePasswordResp, error) {
	d.users[r.Email].Hash = r.NewHash
	return &api.UpdatePasswordResp{}, nil
}

func (d *dex) CreateClient(_ context.Context, r *api.CreateClientReq, _ ...grpc.CallOption) (*api.CreateClientResp, error) {
	if d.clients[r.Client.Id] != nil {
		return &api.CreateClientResp{AlreadyExists: true}, nil
	}
	d.clients[r.Client.Id] = r.Client
	return &api.CreateClientResp{}, nil
}

func (d *dex) DeleteClient(_ context.Context, r *api.DeleteClientReq, _ ...grpc.CallOption) (*api.DeleteClientResp, error) {
	_, there := d.clients[r.Id]
	delete(d.clients, r.Id)
	return &api.DeleteClientResp{NotFound: !there}, nil
}

// TestWhatSignsInIsMadeOnceAndKeptInStep: a second time changes no secret, and the address of
// the portal follows.
func TestWhatSignsInIsMadeOnceAndKeptInStep(t *testing.T) {
	d := &dex{users: map[string]*api.Password{}, clients: map[string]*api.Client{}}
	k := &kubernetes{objects: map[string]string{}}
	c := RegisterConfig{Users: []User{{"user1", "user1@example.com", "one"}}, PortalURL: "https://a.example", Namespace: "dex", Secret: "clients"}
	done, err := register(t.Context(), d, c, k.cluster(t))
	require.NoError(t, err)
	require.Equal(t, []string{"user user1: created", "client portal: created", "secret clients: created"}, done)
	require.Equal(t, []string{"https://a.example/callback"}, d.clients["portal"].RedirectUris)
	require.Len(t, k.sent, 1)
	text, ok := strings.CutPrefix(k.sent[0], "POST /api/v1/namespaces/dex/secrets ")
	require.True(t, ok, k.sent[0])
	var made struct{ StringData map[string]string }
	require.NoError(t, json.Unmarshal([]byte(text), &made))
	secret := made.StringData["portal"]
	require.Equal(t, d.clients["portal"].Secret, secret)
	require.GreaterOrEqual(t, len(secret), 26)

	k.objects["/api/v1/namespaces/dex/secrets/clients"] = `{"data": {"portal": "` + base64.StdEncoding.EncodeToString([]byte(secret)) + `"}}`
	c.PortalURL, c.Users[0].Password = "https://b.example", "two"
	done, err = register(t.Context(), d, c, k.cluster(t))
	require.NoError(t, err)
	require.Equal(t, []string{"user user1: password changed", "client portal: made anew"}, done)
	require.Equal(t, secret, d.clients["portal"].Secret)
	require.Equal(t, []string{"https://b.example/callback"}, d.clients["portal"].RedirectUris)
	require.Len(t, k.sent, 1)

	k.objects["/api/v1/namespaces/dex/secrets/clients"] = `{"data": {}}`
	_, err = register(t.Context(), d, c, k.cluster(t))
	require.ErrorContains(t, err, "it has no key portal")
}
