package proxy_test

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/s3/gateway"
	"github.com/slipway-sh/slipway/ci/test/s3/gateway/gatewaytest"
	"github.com/slipway-sh/slipway/ci/test/s3/proxy"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// writes are those that arrived late.
type writes struct {
	mu  sync.Mutex
	all []proxy.Write
}

func (w *writes) add(one proxy.Write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, one)
}

func (w *writes) take() []proxy.Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

func open(t *testing.T, address string) *store.Store {
	t.Helper()
	s, err := gatewaytest.Open(t.Context(), gateway.URL(address, gateway.Bucket, "test"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// TestModes: each does to a real client and a real server what it says.
func TestModes(t *testing.T) {
	server := gatewaytest.Start(t, "../server")
	var late writes
	p, err := proxy.Listen("127.0.0.1", server, 1, late.add)
	require.NoError(t, err)
	direct, s := open(t, server), open(t, p.Address())
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
		{proxy.Reset, func(t *testing.T) {
			require.ErrorContains(t, s.Put(t.Context(), "reset", []byte("x")), "connection reset by peer")
			absent(t, "reset")
		}},
		{proxy.Lost, func(t *testing.T) {
			require.ErrorContains(t, s.Put(t.Context(), "lost", []byte("x")), "connection reset by peer")
			there(t, "lost", "x")
		}},
		{proxy.Delay, func(t *testing.T) {
			require.ErrorIs(t, s.Put(short(), "delay", []byte("x")), context.DeadlineExceeded)
			absent(t, "delay")
			require.Eventually(t, func() bool { _, err := direct.Get(t.Context(), "delay"); return err == nil }, 10*time.Second, 10*time.Millisecond)
			require.NoError(t, s.Put(t.Context(), "delay", []byte("y")))
			there(t, "delay", "y")
			require.Equal(t, []proxy.Write{{Path: "/slipway/test/delay", Body: []byte("x")}}, late.take())
		}},
		{proxy.Duplicate, func(t *testing.T) {
			require.NoError(t, s.Put(t.Context(), "duplicate", []byte("x")))
			require.ErrorIs(t, s.Create(t.Context(), "twice", []byte("x")), store.ErrExists, "the first one created it")
			there(t, "twice", "x")
		}},
		{proxy.Late, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // it is tried again until then
			defer cancel()
			require.Error(t, s.Put(ctx, "late", []byte("x")))
			absent(t, "late")
			require.NoError(t, direct.Put(t.Context(), "late", []byte("y")))
			require.NoError(t, p.Close())
			there(t, "late", "x")
			require.NotEmpty(t, late.take())
			require.ErrorContains(t, s.Put(t.Context(), "late", []byte("y")), "connection refused")
		}},
	} {
		t.Run("mode "+string(c.mode), func(t *testing.T) {
			p.Set(proxy.Fault{Mode: c.mode, Share: 1, Delay: 2 * time.Second})
			c.test(t)
			require.NotZero(t, p.Counts()[c.mode])
			require.Empty(t, late.take())
		})
	}
}

// TestFault_share: the requests that nothing is done to pass.
func TestFault_share(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	p, err := proxy.Listen("127.0.0.1", server.Listener.Addr().String(), 1, nil)
	require.NoError(t, err)
	p.Set(proxy.Fault{Mode: proxy.Reset, Share: 0.5})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // what a connection was used for before is tried again
	failed := 0
	for range 200 {
		r, err := client.Get("http://" + p.Address())
		if err != nil {
			failed++
			continue
		}
		require.NoError(t, r.Body.Close())
		require.Equal(t, http.StatusNotFound, r.StatusCode)
	}
	require.Equal(t, map[proxy.Mode]int{proxy.Reset: failed, proxy.Pass: 200 - failed}, p.Counts())
	require.InDelta(t, 100, failed, 50)
	require.NoError(t, p.Close())
}
