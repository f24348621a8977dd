package s3

import (
	"context"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/s3/gateway"
	"github.com/slipway-sh/slipway/ci/test/s3/proxy"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// TestProxy: each mode does to a real client and a real server what it says.
func TestProxy(t *testing.T) {
	server := start(t)
	p, err := proxy.Listen("127.0.0.1", server, 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	direct, s := open(t, server, gateway.Bucket, "test"), open(t, p.Address(), gateway.Bucket, "test")
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	there := func(t *testing.T, key, want string) {
		t.Helper()
		data, err := direct.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, want, string(data))
	}
	absent := func(t *testing.T, key string) {
		t.Helper()
		_, err := direct.Get(t.Context(), key)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	for _, c := range []struct {
		mode proxy.Mode
		test func(t *testing.T)
	}{
		{proxy.Pass, func(t *testing.T) {
			require.NoError(t, s.Create(t.Context(), "pass", []byte("value")))
			require.ErrorIs(t, s.Create(t.Context(), "pass", nil), store.ErrExists)
			require.NoError(t, s.Put(t.Context(), "empty", nil))
			keys, err := s.List(t.Context(), "")
			require.NoError(t, err)
			require.Equal(t, []string{"empty", "pass"}, keys)
			require.NoError(t, s.Delete(t.Context(), "empty"))
			data, err := s.Get(t.Context(), "pass")
			require.NoError(t, err)
			require.Equal(t, "value", string(data))
		}},
		{proxy.Cut, func(t *testing.T) {
			require.ErrorIs(t, s.Put(short(), "cut", []byte("x")), context.DeadlineExceeded)
			_, err := s.Get(short(), "pass")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			absent(t, "cut")
		}},
		{proxy.Delay, func(t *testing.T) {
			require.ErrorIs(t, s.Put(short(), "delay", []byte("x")), context.DeadlineExceeded)
			absent(t, "delay")
			require.Eventually(t, func() bool { _, err := direct.Get(t.Context(), "delay"); return err == nil }, 10*time.Second, 10*time.Millisecond)
			require.NoError(t, s.Put(t.Context(), "delay", []byte("y")))
			there(t, "delay", "y")
		}},
		{proxy.Duplicate, func(t *testing.T) {
			require.NoError(t, s.Put(t.Context(), "duplicate", []byte("x")))
			require.ErrorIs(t, s.Create(t.Context(), "twice", []byte("x")), store.ErrExists, "the first one created it")
			there(t, "twice", "x")
		}},
	} {
		t.Run("mode "+string(c.mode), func(t *testing.T) {
			p.Set(proxy.Fault{Mode: c.mode, Delay: 2 * time.Second})
			c.test(t)
			require.NotZero(t, p.Counts()[c.mode])
		})
	}
}
