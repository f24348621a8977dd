package containers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/containers/tunnel"
	"github.com/slipway-sh/slipway/fault"
)

const (
	// tunnelSocket is where the end of the tunnel in a container meets the one on this
	// machine.
	tunnelSocket = "/run/slipway-tunnel"
	// publishLimit is how long that container may take to come up; it does so in a second.
	publishLimit = 2 * time.Minute
)

// Publish publishes the API and the ports on the address Bind until ctx ends, or the node
// does, and calls ready once they are. The error has tunnel.ErrPort in it if a port is taken; not so
// on Windows, where Dagger listens, and says neither that in a way that a program understands
// nor that the node has ended.
func (c *Cluster) Publish(ctx context.Context, ready func()) error {
	if runtime.GOOS == "windows" { // where the engine does not find the path of a socket
		return c.up(ctx, ready)
	}
	host, err := tunnel.Listen(ctx, c.bind, c.tunnelPorts())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var there atomic.Bool
	late := time.AfterFunc(publishLimit, func() {
		if !there.Load() {
			cancel(notPublished(fault.Timeout, fmt.Errorf("waited %s for the tunnel's container", publishLimit)))
		}
	})
	defer late.Stop()
	var other sync.WaitGroup
	other.Go(func() {
		_, err := c.forwarder(host.Socket()).Sync(ctx)
		if err == nil {
			err = errors.New("the tunnel's container ended")
		}
		cancel(notPublished(fault.Step, withStderr(err)))
	})
	err = host.Serve(ctx, func() {
		there.Store(true)
		ready()
		other.Go(func() { cancel(c.watch(ctx, host.Dial)) })
	})
	cancel(err)
	other.Wait()
	return err
}

func notPublished(class fault.Class, err error) error {
	return &fault.Fault{Code: codeLost, Class: class, Op: "publish the cluster's ports", Err: err,
		Fix: "run the same command again; if it fails again, look at the engine's log"}
}

// tunnelPorts lead from the ports of this machine to the cluster's.
func (c *Cluster) tunnelPorts() []tunnel.Port {
	ports := []tunnel.Port{{Here: c.api, There: APIPort}}
	for _, p := range c.ports {
		ports = append(ports, tunnel.Port{Here: p, There: p})
	}
	return ports
}

// forwarder runs the end of the tunnel beside the cluster.
func (c *Cluster) forwarder(socket string) *dagger.Container {
	return fresh(c.toolchain.WithServiceBinding("cluster", c.service)).
		WithUnixSocket(tunnelSocket, c.client.Host().UnixSocket(socket)).
		WithExec([]string{binDir + "/slipway", "forward", tunnelSocket, "cluster"})
}

// up publishes the ports with Dagger's own tunnel.
func (c *Cluster) up(ctx context.Context, ready func()) error {
	var forward []dagger.PortForward
	for _, p := range c.tunnelPorts() {
		forward = append(forward, dagger.PortForward{Frontend: p.Here, Backend: p.There, Protocol: dagger.NetworkProtocolTcp})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var other sync.WaitGroup
	other.Go(func() {
		late, stop := context.WithTimeout(ctx, publishLimit)
		defer stop()
		for _, p := range forward {
			if !accepts(late, p.Frontend) {
				cancel(notPublished(fault.Timeout, fmt.Errorf("waited %s for port %d of this machine", publishLimit, p.Frontend)))
				return
			}
		}
		ready()
	})
	err := c.service.Up(ctx, dagger.ServiceUpOpts{Ports: forward})
	if err == nil {
		err = errors.New("the tunnel of Dagger ended")
	}
	cancel(notPublished(fault.Step, err))
	other.Wait()
	return context.Cause(ctx)
}

// accepts waits until a port of this machine accepts connections; it gives up when ctx ends.
func accepts(ctx context.Context, port int) bool {
	for {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = conn.Close()
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
}
