package containers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/slipway-sh/slipway/fault"
)

// CodeNodeGone: the cluster's node ended, and Publish did not end it.
const CodeNodeGone fault.Code = "CTR-009"

// How often the node is asked for a sign of life, how long one may take (more than the tunnel
// takes to say that nobody listens), and after how long without one the node is gone: half a
// minute in all.
const (
	askEvery  = 2 * time.Second
	askLimit  = 12 * time.Second
	goneAfter = 15 * time.Second
)

// watch returns when the node is gone, which is a fault, or ctx ends. dial connects to a port
// of the node.
func (c *Cluster) watch(ctx context.Context, dial func(context.Context, int) (net.Conn, error)) error {
	var silent time.Time // when it was asked first and gave none; it is asked again, for this program may have been stopped meanwhile
	for {
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		asked := time.Now()
		switch {
		case alive(ctx, dial):
			silent = time.Time{}
		case ctx.Err() != nil:
		case silent.IsZero():
			silent = asked
		case time.Since(silent) >= goneAfter:
			return &fault.Fault{
				Code: CodeNodeGone, Class: fault.Step, Op: "run the cluster's node",
				Fix: "run the same command again, which starts the node from its volume; its last lines are in the log of the background cluster, or above",
				Err: fmt.Errorf("the node of deployment %s has ended: nothing listens on its port %d any more", c.name, HealthPort),
			}
		}
	}
}

// alive reports whether the node's process listens: it turns away who speaks no TLS. One that
// takes its time does listen, and of one behind a tunnel that is away nothing is known.
func alive(ctx context.Context, dial func(context.Context, int) (net.Conn, error)) bool {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	conn, err := dial(ctx, HealthPort)
	if err != nil {
		return true
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(askLimit))
	_, err = io.WriteString(conn, "GET /readyz HTTP/1.0\r\n\r\n")
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	late, ok := errors.AsType[net.Error](err)
	return err == nil || ok && late.Timeout()
}
