package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/dexidp/dex/api/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// users are those of a Dex whose API it answers as Dex does.
type users struct {
	api.UnimplementedDexServer

	all    map[string]*api.Password
	faster bool // somebody else makes the user first
	gone   bool // and takes it away again
	broken bool
	writes int
}

func (u *users) VerifyPassword(_ context.Context, r *api.VerifyPasswordReq) (*api.VerifyPasswordResp, error) {
	if u.broken {
		return nil, errors.New("no storage")
	}
	p := u.all[r.Email]
	if p == nil {
		return &api.VerifyPasswordResp{NotFound: true}, nil
	}
	return &api.VerifyPasswordResp{Verified: bcrypt.CompareHashAndPassword(p.Hash, []byte(r.Password)) == nil}, nil
}

func (u *users) CreatePassword(_ context.Context, r *api.CreatePasswordReq) (*api.CreatePasswordResp, error) {
	u.writes++
	if u.faster {
		if !u.gone {
			u.all[r.Password.Email] = &api.Password{Email: r.Password.Email, UserId: "theirs"}
		}
		return &api.CreatePasswordResp{AlreadyExists: true}, nil
	}
	u.all[r.Password.Email] = r.Password
	return &api.CreatePasswordResp{}, nil
}

func (u *users) UpdatePassword(_ context.Context, r *api.UpdatePasswordReq) (*api.UpdatePasswordResp, error) {
	u.writes++
	p := u.all[r.Email]
	if p == nil {
		return &api.UpdatePasswordResp{NotFound: true}, nil
	}
	p.Hash, p.Username = r.NewHash, r.NewUsername
	return &api.UpdatePasswordResp{}, nil
}

func (u *users) client(t *testing.T) api.DexClient {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	api.RegisterDexServer(server, u)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:dex", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return api.NewDexClient(conn)
}

func TestTheAdministratorIsMadeOnce(t *testing.T) {
	u := &users{all: map[string]*api.Password{}}
	dex := u.client(t)
	c := AdminConfig{Email: "admin@slipway.test", Name: "admin", ID: "id-1", Password: "s3cret"}
	for n, want := range []string{"created", "unchanged"} {
		done, err := createAdmin(t.Context(), dex, c)
		require.NoError(t, err)
		require.Equal(t, want, done)
		require.Equal(t, 1, u.writes, n)
	}
	made := u.all[c.Email]
	require.Equal(t, "id-1", made.UserId)
	require.Equal(t, "admin", made.Username)
	cost, err := bcrypt.Cost(made.Hash)
	require.NoError(t, err)
	require.Equal(t, hashCost, cost)

	c.Password, c.ID = "0ther", "id-2"
	done, err := createAdmin(t.Context(), dex, c)
	require.NoError(t, err)
	require.Equal(t, "password changed", done)
	require.Len(t, u.all, 1)
	require.NoError(t, bcrypt.CompareHashAndPassword(u.all[c.Email].Hash, []byte("0ther")))
	require.Equal(t, "id-1", u.all[c.Email].UserId, "who the user is never changes")
}

func TestAnAdministratorOfSomebodyFaster(t *testing.T) {
	u := &users{all: map[string]*api.Password{}, faster: true}
	c := AdminConfig{Email: "admin@slipway.test", Name: "admin", ID: "id-1", Password: "s3cret"}
	done, err := createAdmin(t.Context(), u.client(t), c)
	require.NoError(t, err)
	require.Equal(t, "password changed", done)

	u = &users{all: map[string]*api.Password{}, faster: true, gone: true}
	_, err = createAdmin(t.Context(), u.client(t), c)
	require.ErrorContains(t, err, "the user is gone")
}

func TestAnAdministratorThatCannotBeMade(t *testing.T) {
	c := AdminConfig{Email: "admin@slipway.test", Password: "s3cret"}
	_, err := createAdmin(t.Context(), (&users{broken: true}).client(t), c)
	require.ErrorContains(t, err, "ask for the user admin@slipway.test")
	c.Password = Secret(strings.Repeat("x", 73))
	_, err = createAdmin(t.Context(), (&users{}).client(t), c)
	require.ErrorContains(t, err, "hash the password")
	require.NotContains(t, err.Error(), "xxx")
}
