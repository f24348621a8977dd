package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	gateway "github.com/slipway-sh/slipway/ci/test/s3"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/buckets"
)

// mode is how a request is treated.
type mode string

// The modes.
const (
	passOn       mode = ""          // forwarded and answered
	cutOff       mode = "cut"       // accepted, and neither forwarded nor answered
	deliverLate  mode = "delay"     // forwarded after a while, and answered if the client still waits
	deliverTwice mode = "duplicate" // a write is forwarded twice; the client gets the second answer
)

// disturbance is how requests are treated. The zero value forwards them.
type disturbance struct {
	mode  mode
	delay time.Duration // of deliverLate: from half of it to all of it
}

// badNetwork is a proxy between a client and an S3 server that treats requests as networks do. It
// forwards every request that it accepts, even if the client has gone meanwhile. It is safe for
// concurrent use.
type badNetwork struct {
	forward  *httputil.ReverseProxy
	client   *http.Transport
	listener net.Listener
	serving  *http.Server
	requests sync.WaitGroup // still to be forwarded

	mu     sync.Mutex
	now    disturbance
	rand   *rand.Rand
	counts map[mode]int
}

// listen starts a badNetwork before the server at an address, on some port of a host of this machine.
func listen(host, server string, seed uint64) (*badNetwork, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for clients of %s: %w", server, err)
	}
	p := &badNetwork{
		listener: listener, rand: rand.New(rand.NewPCG(seed, 0)), counts: map[mode]int{},
		// A header that the client has signed is left alone, and so is the host.
		client: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16},
	}
	p.forward = &httputil.ReverseProxy{
		Transport:    p.client,
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", server },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // no answer
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	p.serving = &http.Server{Handler: p}
	go func() { _ = p.serving.Serve(listener) }() // until close
	return p, nil
}

// address is where it listens.
func (p *badNetwork) address() string { return p.listener.Addr().String() }

// set changes how requests are treated from now on.
func (p *badNetwork) set(d disturbance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = d
}

// sums returns the number of requests by mode.
func (p *badNetwork) sums() map[mode]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// close ends all connections with clients, and returns once every accepted request is forwarded.
func (p *badNetwork) close() error {
	err := p.serving.Close()
	p.requests.Wait()
	p.client.CloseIdleConnections()
	return err
}

// draw decides how a request is treated.
func (p *badNetwork) draw() (mode, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now.mode, time.Duration((0.5 + p.rand.Float64()/2) * float64(p.now.delay))
}

// ServeHTTP takes a request.
func (p *badNetwork) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	how, delay := p.draw()
	if how == deliverTwice && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		how = passOn
	}
	p.mu.Lock()
	p.counts[how]++
	p.mu.Unlock()
	if how == cutOff {
		<-r.Context().Done()
		return
	}
	p.requests.Add(1)
	defer p.requests.Done()
	if how == deliverLate {
		time.Sleep(delay)
	}
	if how == deliverTwice {
		p.deliver(httptest.NewRecorder(), r, body)
	}
	p.deliver(w, r, body)
}

// deliver forwards a request, whether its client still waits or not.
func (p *badNetwork) deliver(w http.ResponseWriter, r *http.Request, body []byte) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	out := r.Clone(ctx)
	out.Body = io.NopCloser(bytes.NewReader(body))
	p.forward.ServeHTTP(w, out)
}

// TestBadNetwork: each mode does to a real client and a real server what it says.
func TestBadNetwork(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", s3ID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3Secret)
	server := gateway.Start(t, filepath.Join(root(t), "ci/test/s3/server"), "127.0.0.1").Address
	p, err := listen("127.0.0.1", server, 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.close()) })
	at := func(address string) *store.Store {
		s, err := store.Open(t.Context(), gateway.URL(address, gateway.Bucket, "test"), store.Options{Openers: buckets.All()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	direct, s := at(server), at(p.address())
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
		mode mode
		test func(t *testing.T)
	}{
		{passOn, func(t *testing.T) {
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
		{cutOff, func(t *testing.T) {
			require.ErrorIs(t, s.Put(short(), "cut", []byte("x")), context.DeadlineExceeded)
			_, err := s.Get(short(), "pass")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			absent(t, "cut")
		}},
		{deliverLate, func(t *testing.T) {
			require.ErrorIs(t, s.Put(short(), "delay", []byte("x")), context.DeadlineExceeded)
			absent(t, "delay")
			require.Eventually(t, func() bool { _, err := direct.Get(t.Context(), "delay"); return err == nil }, 10*time.Second, 10*time.Millisecond)
			require.NoError(t, s.Put(t.Context(), "delay", []byte("y")))
			there(t, "delay", "y")
		}},
		{deliverTwice, func(t *testing.T) {
			require.NoError(t, s.Put(t.Context(), "duplicate", []byte("x")))
			require.ErrorIs(t, s.Create(t.Context(), "twice", []byte("x")), store.ErrExists, "the first one created it")
			there(t, "twice", "x")
		}},
	} {
		t.Run("mode "+string(c.mode), func(t *testing.T) {
			p.set(disturbance{mode: c.mode, delay: 2 * time.Second})
			c.test(t)
			require.NotZero(t, p.sums()[c.mode])
		})
	}
}
