package tunnel

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/yamux"
)

const (
	dialLimit = 10 * time.Second // for a port behind the tunnel
	tries     = 20               // to reach the other end, one after the other
	tryEvery  = 500 * time.Millisecond
)

// Answer is the end of a tunnel in a container: it leads connections from socket to ports of
// host until ctx ends. It fails when it cannot reach the other end for ten seconds.
func Answer(ctx context.Context, socket, host string) error {
	var err error
	for failed := 0; failed < tries; failed++ {
		var conn net.Conn
		if conn, err = new(net.Dialer).DialContext(ctx, "unix", socket); err == nil {
			began := time.Now()
			err = answer(ctx, conn, host)
			if time.Since(began) > tries*tryEvery {
				failed = 0
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(tryEvery):
		}
	}
	return fmt.Errorf("reach the other end of the tunnel: %w", err)
}

// answer leads connections that come through conn, until that ends.
func answer(ctx context.Context, conn net.Conn, host string) error {
	s, err := yamux.Server(conn, config(halfOpen))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	defer func() { _ = s.Close() }()
	for {
		stream, err := s.AcceptStream()
		if err != nil {
			return err
		}
		go connect(ctx, stream, host)
	}
}

// connect connects a stream to the port that it asks for, and closes it if nothing listens
// there.
func connect(ctx context.Context, stream *yamux.Stream, host string) {
	defer func() { _ = stream.Close() }()
	var port [2]byte
	if _, err := io.ReadFull(stream, port[:]); err != nil {
		return
	}
	there := net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port[:]))))
	conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", there)
	if err != nil {
		return
	}
	join(conn, stream)
}
