package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// waitLimit is how long a user's connection waits for the other end.
const waitLimit = 30 * time.Second

// Port leads a TCP port of this machine to one behind the tunnel.
type Port struct{ Here, There int }

// Host is the end of a tunnel on this machine.
type Host struct {
	dir     string
	socket  net.Listener
	ports   map[net.Listener]int // where each leads
	waiting chan net.Conn
}

// Listen listens on ports, on all addresses of this machine. Serve or Close ends that.
func Listen(ctx context.Context, ports []Port) (*Host, error) {
	dir, err := os.MkdirTemp("", "slipway-") // only its owner may look into it
	if err != nil {
		return nil, fmt.Errorf("make a directory for a socket: %w", err)
	}
	h := &Host{dir: dir, ports: map[net.Listener]int{}, waiting: make(chan net.Conn)}
	var listen net.ListenConfig
	if h.socket, err = listen.Listen(ctx, "unix", filepath.Join(dir, "tunnel")); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the container: %w", err), os.RemoveAll(dir))
	}
	for _, p := range ports {
		l, err := listen.Listen(ctx, "tcp", fmt.Sprintf(":%d", p.Here))
		if err != nil {
			h.Close()
			return nil, fmt.Errorf("listen on a port of this machine: %w", err)
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer h.Close()
	defer context.AfterFunc(ctx, h.Close)()
	var all sync.WaitGroup
	all.Go(func() { cancel(h.collect(ctx, sync.OnceFunc(ready))) })
	for l, there := range h.ports {
		all.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					cancel(err)
					return
				}
				all.Go(func() { h.lead(ctx, conn, there) })
			}
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

// collect keeps the connections of the other end until they are used.
func (h *Host) collect(ctx context.Context, ready func()) error {
	for {
		conn, err := h.socket.Accept()
		if err != nil {
			return err
		}
		ready()
		go func() {
			select {
			case h.waiting <- conn:
			case <-ctx.Done():
				_ = conn.Close()
			}
		}()
	}
}

// lead leads one connection to a port behind the tunnel, and closes it if that cannot be.
func (h *Host) lead(ctx context.Context, conn net.Conn, port int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	late := time.After(waitLimit)
	for {
		select {
		case other := <-h.waiting:
			stop := context.AfterFunc(ctx, func() { _ = other.Close() })
			err := call(other, port)
			if err == nil {
				join(conn, other)
			}
			stop()
			_ = other.Close()
			if err == nil || errors.Is(err, errRefused) {
				_ = conn.Close()
				return
			}
		case <-late:
			_ = conn.Close()
			return
		case <-ctx.Done():
			return
		}
	}
}
