package containers

import (
	"context"
	"errors"
	"fmt"
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
// does, and calls ready once they are. The error has tunnel.ErrPort in it if a port is taken.
func (c *Cluster) Publish(ctx context.Context, ready func()) error {
	if runtime.GOOS == "windows" {
		f := notPublished(fault.Preflight, errors.New("the engine does not find a socket of Windows"))
		f.Fix = "run slipway in the Windows Subsystem for Linux"
		return f
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

func notPublished(class fault.Class, err error) *fault.Fault {
	return &fault.Fault{Code: codeLost, Class: class, Op: "publish the cluster's ports", Err: err,
		Fix: "run the same command again; if it fails again, look at the engine's log"}
}

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
