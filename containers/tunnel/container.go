package tunnel

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

const (
	spare      = 8                      // connections that wait at the socket
	retryAfter = 500 * time.Millisecond // where the other end is away
)

// Answer is the end of a tunnel in a container: it leads connections from socket to ports of
// host, until ctx ends.
func Answer(ctx context.Context, socket, host string) {
	var all sync.WaitGroup
	for range spare {
		all.Go(func() {
			for ctx.Err() == nil {
				if answer(ctx, socket, host) != nil {
					select {
					case <-time.After(retryAfter):
					case <-ctx.Done():
					}
				}
			}
		})
	}
	all.Wait()
}

// answer waits at the socket for one connection, and returns once it is led further.
func answer(ctx context.Context, socket, host string) error {
	waiting, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("reach the other end: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = waiting.Close() })
	var port [2]byte
	if _, err := io.ReadFull(waiting, port[:]); err != nil {
		stop()
		_ = waiting.Close()
		return fmt.Errorf("wait for a connection: %w", err)
	}
	go func() {
		defer stop()
		defer func() { _ = waiting.Close() }()
		there := net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port[:]))))
		conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", there)
		if err != nil {
			_, _ = waiting.Write([]byte{refused})
			return
		}
		if _, err := waiting.Write([]byte{opened}); err != nil {
			_ = conn.Close()
			return
		}
		join(waiting, conn)
	}()
	return nil
}
