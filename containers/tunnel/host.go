package tunnel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// ErrPort is in the error of Listen when it is about a port.
var ErrPort = errors.New("listen on a port of this machine")

const (
	waitLimit  = 30 * time.Second       // of a user's connection, for the other end
	retryAfter = 100 * time.Millisecond // where connections cannot be accepted
	longest    = 100                    // path of a unix socket, in bytes; some systems take 103
)

// Port leads a TCP port of this machine to one behind the tunnel.
type Port struct{ Here, There int }

// Host is the end of a tunnel on this machine.
type Host struct {
	dir    string
	socket net.Listener
	ports  map[net.Listener]int // where each leads

	halfOpen time.Duration // see the constant

	mu      sync.Mutex
	session *yamux.Session // with the end in the container; nil before it is there
	changed chan struct{}  // closed with the next session
}

// Listen listens on ports of an address of this machine; 0.0.0.0 or :: is all of them. Serve or
// Close ends that.
func Listen(ctx context.Context, address string, ports []Port) (*Host, error) {
	dir, err := os.MkdirTemp("", "slipway-") // only its owner may look into it
	if err == nil && len(dir) > longest-len("/tunnel") {
		_ = os.Remove(dir)
		dir, err = os.MkdirTemp("/tmp", "slipway-")
	}
	if err != nil {
		return nil, fmt.Errorf("make a directory for a socket: %w", err)
	}
	h := &Host{dir: dir, ports: map[net.Listener]int{}, halfOpen: halfOpen, changed: make(chan struct{})}
	var listen net.ListenConfig
	if h.socket, err = listen.Listen(ctx, "unix", filepath.Join(dir, "tunnel")); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the container: %w", err), os.RemoveAll(dir))
	}
	for _, p := range ports {
		l, err := listen.Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(p.Here)))
		if err != nil {
			h.Close()
			return nil, fmt.Errorf("%w: %w", ErrPort, err)
		}
		h.ports[l] = p.There
	}
	return h, nil
}

// Socket is the path of the unix socket on which the end in the container is awaited.
func (h *Host) Socket() string { return h.socket.Addr().String() }

// Serve leads connections until ctx ends, and returns why it did. ready is called once the
// end in the container is there.
func (h *Host) Serve(ctx context.Context, ready func()) error {
	defer h.Close()
	defer context.AfterFunc(ctx, h.Close)()
	ready = sync.OnceFunc(ready)
	var all sync.WaitGroup
	all.Go(func() {
		accept(ctx, h.socket, func(conn net.Conn) {
			s, err := yamux.Client(conn, config(h.halfOpen))
			if err != nil { // a mistake in our configuration
				panic(err)
			}
			defer context.AfterFunc(ctx, func() { _ = s.Close() })()
			h.use(s)
			ready()
			<-s.CloseChan()
		})
	})
	for l, there := range h.ports {
		all.Go(func() {
			accept(ctx, l, func(conn net.Conn) { h.lead(ctx, conn, there) })
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Close stops listening.
func (h *Host) Close() {
	_ = h.socket.Close()
	for l := range h.ports {
		_ = l.Close()
	}
	_ = os.RemoveAll(h.dir)
}

// accept calls do, in goroutines of their own, with each connection until ctx ends, and
// waits for them.
func accept(ctx context.Context, l net.Listener, do func(net.Conn)) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			all.Go(func() { do(conn) })
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		default: // such as too many open files: some will be closed
			time.Sleep(retryAfter)
		}
	}
}

// use makes a session the one that connections are led through.
func (h *Host) use(s *yamux.Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = s
	close(h.changed)
	h.changed = make(chan struct{})
}

// lead leads one connection to a port behind the tunnel, and closes it if that cannot be.
func (h *Host) lead(ctx context.Context, conn net.Conn, port int) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	stream := h.open(ctx, port)
	if stream == nil {
		_ = conn.Close()
		return
	}
	join(conn, stream)
}

// Dial connects to a port behind the tunnel. The connection ends if nothing listens there.
func (h *Host) Dial(ctx context.Context, port int) (net.Conn, error) {
	if stream := h.open(ctx, port); stream != nil {
		return stream, nil
	}
	return nil, errors.New("the other end of the tunnel is away")
}

// open opens a stream to a port; nil if the other end is away for too long.
func (h *Host) open(ctx context.Context, port int) *yamux.Stream {
	late := time.After(waitLimit)
	for {
		h.mu.Lock()
		s, changed := h.session, h.changed
		h.mu.Unlock()
		if s != nil {
			if stream, err := s.OpenStream(); err == nil {
				if _, err := stream.Write(binary.BigEndian.AppendUint16(nil, uint16(port))); err == nil {
					return stream
				}
				_ = stream.Close()
			}
		}
		select {
		case <-changed:
		case <-late:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
