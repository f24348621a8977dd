package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// The parts of a node. A part's state is "waiting", "ready" or "failed". The
// node is ready when all are, apart from the pods: pods of an earlier start may
// take long or never come back.
const (
	partAPI      = "api"
	partBalancer = "loadbalancer"
	partNode     = "node"
	partRegistry = "registry" // the node's own
	partPods     = "pods"
)

// health collects the state of the node. Its methods may be called from any
// goroutine.
type health struct {
	mu        sync.Mutex
	started   time.Time
	parts     map[string]status
	processes map[string]*process
}

func newHealth(now time.Time) *health {
	h := &health{started: now, parts: map[string]status{}, processes: map[string]*process{}}
	for _, part := range []string{partAPI, partBalancer, partNode, partRegistry, partPods} {
		h.parts[part] = status{State: "waiting", Since: now.UTC()}
	}
	return h
}

// set records the state of a part, and the time if the state changes.
func (h *health) set(part, state, detail string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.parts[part]
	if p.State != state {
		p.Since = time.Now().UTC()
	}
	p.State, p.Detail = state, detail
	h.parts[part] = p
}

func (h *health) add(p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.processes[p.name] = p
}

type report struct {
	Ready      bool              `json:"ready"`
	Started    time.Time         `json:"started"`
	Parts      map[string]status `json:"parts"`
	Components map[string]status `json:"components"`
}

func (h *health) report() report {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := report{Ready: true, Started: h.started.UTC(), Parts: map[string]status{}, Components: map[string]status{}}
	for name, p := range h.parts {
		r.Parts[name] = p
		r.Ready = r.Ready && (p.State == "ready" || name == partPods)
	}
	for name, p := range h.processes {
		r.Components[name] = p.status()
	}
	return r
}

// ServeHTTP answers /readyz, and /readyz/pods, with the report: 200 when the node is ready, and for
// the latter also every pod that was ready before the start; otherwise 503.
func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	report := h.report()
	ready := report.Ready
	switch r.URL.Path {
	case "/readyz":
	case "/readyz/pods":
		ready = ready && report.Parts[partPods].State == "ready"
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(report) // the client has gone
}

// serveHealth serves the health to clients with a certificate of the cluster, until ctx ends.
func (n *node) serveHealth(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("open the health endpoint: %w", err)
	}
	// It does not say who is turned away: a command that publishes the ports asks for a sign
	// of life every two seconds, without a certificate.
	silent := log.New(io.Discard, "", 0)
	return serve(ctx, tls.NewListener(listener, n.mutual), "the health endpoint", &http.Server{Handler: n.health, ErrorLog: silent})
}

// serve has server answer on listener until ctx ends; what names it in errors.
func serve(ctx context.Context, listener net.Listener, what string, server *http.Server) error {
	server.ReadHeaderTimeout = 5 * time.Second
	stop := context.AfterFunc(ctx, func() { release(server) })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", what, err)
	}
	return nil
}
