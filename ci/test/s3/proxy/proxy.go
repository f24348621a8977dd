// Package proxy stands between a client and an S3 server, in tests, and does to requests what
// networks do. What it has taken to deliver arrives, even if the client has gone meanwhile.
package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// Mode is what is done to a request.
type Mode string

// The modes.
const (
	Pass      Mode = ""          // it is delivered, and answered
	Cut       Mode = "cut"       // it is taken, and neither delivered nor answered
	Delay     Mode = "delay"     // it is delivered after a while, and answered if its client still waits
	Duplicate Mode = "duplicate" // a write is delivered twice, and the second answer counts
)

// Fault is what is done to requests. The zero value is nothing.
type Fault struct {
	Mode  Mode
	Delay time.Duration // of mode Delay: from half of it to all of it
}

// Proxy is a proxy that listens. It is safe for concurrent use.
type Proxy struct {
	server   string
	client   *http.Transport
	listener net.Listener
	serving  *http.Server
	requests sync.WaitGroup // that are to be delivered

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
		server: server, listener: listener, rand: rand.New(rand.NewPCG(seed, 0)), counts: map[Mode]int{},
		// A header that the client has signed is left alone.
		client: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16},
	}
	p.serving = &http.Server{Handler: p}
	go func() { _ = p.serving.Serve(listener) }() // until Close
	return p, nil
}

// Address is where it listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Set replaces what is done to requests from now on.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// Counts returns how many requests each mode was done to.
func (p *Proxy) Counts() map[Mode]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Close ends all connections with clients, and returns once all that is to be delivered has
// arrived.
func (p *Proxy) Close() error {
	err := p.serving.Close()
	p.requests.Wait()
	p.client.CloseIdleConnections()
	return err
}

// draw decides what is done to a request.
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
	a, err := p.deliver(r, body)
	if mode == Duplicate {
		a, err = p.deliver(r, body)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	a.send(w)
}

func changes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

type answer struct {
	status int
	header http.Header
	body   []byte
}

// deliver sends a request on as it came, with the address that its client has signed.
func (p *Proxy) deliver(r *http.Request, body []byte) (a answer, err error) {
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", p.server, ""
	out.Body = http.NoBody
	if len(body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	response, err := p.client.RoundTrip(out)
	if err != nil {
		return answer{}, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, text}, err
}

func (a answer) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}
