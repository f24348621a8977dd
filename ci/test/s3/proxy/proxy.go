// Package proxy is a proxy for tests, between a client and an S3 server, that treats requests as
// networks do. It forwards every request that it accepts, even if the client has gone meanwhile.
package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"time"
)

// Mode is how a request is treated.
type Mode string

// The modes.
const (
	Pass      Mode = ""          // forwarded and answered
	Cut       Mode = "cut"       // accepted, and neither forwarded nor answered
	Delay     Mode = "delay"     // forwarded after a while, and answered if the client still waits
	Duplicate Mode = "duplicate" // a write is forwarded twice; the client gets the second answer
)

// Fault is how requests are treated. The zero value forwards them.
type Fault struct {
	Mode  Mode
	Delay time.Duration // for mode Delay: from half of it to all of it
}

// Proxy is a proxy that listens. It is safe for concurrent use.
type Proxy struct {
	forward  *httputil.ReverseProxy
	client   *http.Transport
	listener net.Listener
	serving  *http.Server
	requests sync.WaitGroup // still to be forwarded

	mu     sync.Mutex
	fault  Fault
	rand   *rand.Rand
	counts map[Mode]int
}

// Listen starts a proxy for the server at an address, on some port of a host of this machine.
func Listen(host, server string, seed uint64) (*Proxy, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for clients of %s: %w", server, err)
	}
	p := &Proxy{
		listener: listener, rand: rand.New(rand.NewPCG(seed, 0)), counts: map[Mode]int{},
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
	go func() { _ = p.serving.Serve(listener) }() // until Close
	return p, nil
}

// Address is where it listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Set changes how requests are treated from now on.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// Counts returns the number of requests by mode.
func (p *Proxy) Counts() map[Mode]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Close ends all connections with clients, and returns once every accepted request is forwarded.
func (p *Proxy) Close() error {
	err := p.serving.Close()
	p.requests.Wait()
	p.client.CloseIdleConnections()
	return err
}

// draw decides how a request is treated.
func (p *Proxy) draw() (Mode, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault.Mode, time.Duration((0.5 + p.rand.Float64()/2) * float64(p.fault.Delay))
}

// ServeHTTP takes a request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	mode, delay := p.draw()
	if mode == Duplicate && !changes(r) {
		mode = Pass
	}
	p.mu.Lock()
	p.counts[mode]++
	p.mu.Unlock()
	if mode == Cut {
		<-r.Context().Done()
		return
	}
	p.requests.Add(1)
	defer p.requests.Done()
	if mode == Delay {
		time.Sleep(delay)
	}
	if mode == Duplicate {
		p.deliver(httptest.NewRecorder(), r, body)
	}
	p.deliver(w, r, body)
}

func changes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// deliver forwards a request, whether its client still waits or not.
func (p *Proxy) deliver(w http.ResponseWriter, r *http.Request, body []byte) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	out := r.Clone(ctx)
	out.Body = io.NopCloser(bytes.NewReader(body))
	p.forward.ServeHTTP(w, out)
}
