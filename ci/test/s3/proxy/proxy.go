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
	Reset     Mode = "reset"     // the connection is reset, and nothing is delivered
	Lost      Mode = "lost"      // it is delivered, and the connection is reset in place of the answer
	Delay     Mode = "delay"     // it is delivered after a while, and answered if its client still waits
	Duplicate Mode = "duplicate" // a write is delivered twice, and the second answer counts
	Late      Mode = "late"      // it is answered with an error at once, and a write delivered after a while
)

// Modes are all that do harm.
func Modes() []Mode { return []Mode{Cut, Reset, Lost, Delay, Duplicate, Late} }

// Fault is what is done to requests. The zero value is nothing.
type Fault struct {
	Mode  Mode
	Share float64       // of the requests that it happens to, from 0 to 1; the others pass
	Delay time.Duration // of modes Delay and Late: from half of it to all of it
}

// Write is a request that changes something.
type Write struct {
	Path string // with the bucket
	Body []byte
}

// Proxy is a proxy that listens. It is safe for concurrent use.
type Proxy struct {
	server   string
	late     func(Write)
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
// late, which may be nil, is called after each write that has arrived when its client had gone
// or was told that it failed.
func Listen(host, server string, seed uint64, late func(Write)) (*Proxy, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for clients of %s: %w", server, err)
	}
	if late == nil {
		late = func(Write) {}
	}
	p := &Proxy{
		server: server, late: late, listener: listener, rand: rand.New(rand.NewPCG(seed, 0)), counts: map[Mode]int{},
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
	mode := p.fault.Mode
	if p.rand.Float64() >= p.fault.Share {
		mode = Pass
	}
	return mode, time.Duration((0.5 + p.rand.Float64()/2) * float64(p.fault.Delay))
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
	switch mode {
	case Cut:
		<-r.Context().Done()
	case Reset:
		reset(w)
	case Late:
		if changes(r) {
			p.requests.Go(func() {
				time.Sleep(delay)
				_, _ = p.deliver(r, body)
				p.late(Write{r.URL.Path, body})
			})
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "<Error><Code>InternalError</Code><Message>it may arrive yet</Message></Error>")
	default:
		p.requests.Add(1)
		defer p.requests.Done()
		if mode == Delay {
			time.Sleep(delay)
		}
		a, err := p.deliver(r, body)
		if mode == Duplicate {
			a, err = p.deliver(r, body)
		}
		if changes(r) && r.Context().Err() != nil {
			p.late(Write{r.URL.Path, body})
		}
		if mode == Lost || err != nil {
			reset(w)
			return
		}
		a.send(w)
	}
}

func changes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// reset resets the connection.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the client has gone
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// answer is what the server answers.
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
