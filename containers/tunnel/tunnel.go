// Package tunnel leads connections to ports of this machine to ports of a host that only a
// container reaches. Its two ends meet at a unix socket of this machine, which the container
// has mounted: the end in the container connects to it, and each connection of a user is a
// stream of its own in that one (docs/decisions/0021-own-tunnel.md).
//
// A stream begins with the port that it is for, two bytes, big-endian. Then both directions
// carry what the user's connection does.
package tunnel

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// halfOpen is how long the other direction of a stream goes on when one has ended. A broken
// connection looks like that to the other end, too: it is how long that one may hold on to it.
const halfOpen = time.Hour

// config is that of both ends. The engine's machine may be busy: an end is away only when
// it has not answered for a minute.
func config(halfOpen time.Duration) *yamux.Config {
	c := yamux.DefaultConfig()
	c.ConnectionWriteTimeout = time.Minute
	c.StreamCloseTimeout = halfOpen
	c.LogOutput = io.Discard
	return c
}

// join copies between a connection and a stream until both directions have ended, and
// closes them. The end of one direction is passed on. One that breaks ends both here; to the
// other end it is the end of one, and it hears of the other after halfOpen at the latest.
func join(conn net.Conn, stream *yamux.Stream) {
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := io.Copy(stream, conn); err != nil {
			_ = conn.Close()
		}
		_ = stream.Close() // of this direction: what the other end still sends arrives, until halfOpen
	})
	both.Go(func() {
		_, err := io.Copy(conn, stream)
		if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
			err = half.CloseWrite()
		}
		if err != nil {
			_ = conn.Close()
		}
	})
	both.Wait()
	_ = conn.Close()
	_ = stream.Close()
}
