package s3

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/buckets"
)

// start runs the server until the test ends. It returns the server's address, and puts credentials
// for it into the environment.
func start(t *testing.T) string {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "access-key-id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "c4nary-secret-access-key")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	return Start(t, "server", "127.0.0.1").Address
}

func open(t *testing.T, address, name, prefix string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), URL(address, name, prefix), store.Options{Openers: buckets.All()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStore(t *testing.T) {
	address := start(t)
	var stores atomic.Int32
	next := func(t *testing.T) *store.Store {
		return open(t, address, Bucket, fmt.Sprintf("test-%d", stores.Add(1)))
	}
	t.Run("conformance, and 50 contenders for the lock", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), "go", "test", "-C", "../../..", "-count=1", "-run", "_server$", "./pipeline/store", "./pipeline/lock")
		cmd.Env = append(os.Environ(), "SLIPWAY_TEST_BUCKET="+URL(address, Bucket, "conformance"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), "no tests to run")
	})
	t.Run("a dead holder", func(t *testing.T) {
		s := next(t)
		quick := lock.Options{Beat: 100 * time.Millisecond, TTL: 2 * time.Second, Grace: 200 * time.Millisecond}
		ctx, lease, err := lock.New(&deaf{Store: s}, quick).Acquire(t.Context(), lock.Holder{User: "alice", Host: "a"})
		require.NoError(t, err)
		_, _, err = lock.New(s, quick).Acquire(t.Context(), lock.Holder{User: "bob", Host: "b"})
		require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeHeld})
		<-ctx.Done()
		second, taken, err := lock.New(s, quick).Acquire(t.Context(), lock.Holder{User: "bob", Host: "b"})
		require.NoError(t, err)
		require.ErrorIs(t, lease.Release(t.Context()), &fault.Fault{Code: lock.CodeLost})
		require.NoError(t, taken.Release(second))
	})
	t.Run("journal", func(t *testing.T) {
		s := next(t)
		l := journal.On(s, "prod")
		d := journal.Digests{Input: "a", Release: "b", Tools: "c"}
		a, err := l.Begin(t.Context(), "run-1", "infrastructure", "terraform", d)
		require.NoError(t, err)
		require.NoError(t, l.End(t.Context(), a, []byte(`{"n":1}`), nil))
		out, why, err := l.Resume(t.Context(), "infrastructure", "terraform", d, func(context.Context, json.RawMessage) error { return nil })
		require.NoError(t, err)
		require.JSONEq(t, `{"n":1}`, string(out), why)
	})
	t.Run("secrets", func(t *testing.T) {
		s := next(t)
		key, _, err := store.NewVaultKey()
		require.NoError(t, err)
		require.NoError(t, store.OpenVault(s, key).Put(t.Context(), 1, "ca", redact.New([]byte("x"))))
		got, err := store.OpenVault(s, key).Get(t.Context(), "ca")
		require.NoError(t, err)
		require.Equal(t, "x", string(got.Reveal()))
	})
	t.Run("no bucket", func(t *testing.T) {
		s := open(t, address, "nowhere", "p")
		require.ErrorIs(t, s.Check(t.Context()), &fault.Fault{Code: store.CodeNoBucket})
		_, err := s.Get(t.Context(), "k")
		require.ErrorIs(t, err, &fault.Fault{Code: store.CodeNoBucket})
		require.ErrorIs(t, s.Create(t.Context(), "k", nil), &fault.Fault{Code: store.CodeNoBucket})
	})
	t.Run("wrong credentials", func(t *testing.T) {
		t.Setenv("AWS_SECRET_ACCESS_KEY", "an0ther-secret-key")
		s := open(t, address, Bucket, "p")
		err := s.Check(t.Context())
		require.ErrorIs(t, err, &fault.Fault{Code: store.CodeRefused})
		require.NotContains(t, err.Error(), "an0ther")
		t.Setenv("AWS_ACCESS_KEY_ID", "nobody")
		err = open(t, address, Bucket, "p").Check(t.Context())
		require.ErrorIs(t, err, &fault.Fault{Code: store.CodeRefused})
	})
}

// deaf is the store of a holder that died after it took the lock.
type deaf struct{ *store.Store }

func (d *deaf) Put(context.Context, string, []byte) error { return context.DeadlineExceeded }
