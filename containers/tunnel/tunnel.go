// Package tunnel leads connections to ports of this machine to ports of a host that only a
// container reaches. The two ends meet at a unix socket of this machine, which the
// container has mounted: its end keeps connections there that wait, and each of them is
// used for one connection of a user. So these share nothing but the engine, and one that
// breaks or stands still is nothing to the others (docs/decisions/0021-own-tunnel.md).
//
// On a waiting connection the end on this machine writes the port, two bytes, big-endian.
// The one in the container answers with one byte, opened or refused; after opened, both
// directions carry what the user's connection does.
package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	refused byte = iota
	opened
)

// errRefused: nothing listens on the port.
var errRefused = errors.New("connection refused")

const (
	dialLimit = 10 * time.Second        // for a port behind the tunnel
	callLimit = dialLimit + time.Second // for the answer of the other end
)

// call asks the other end of a waiting connection to lead it to a port.
func call(waiting net.Conn, port int) error {
	if err := waiting.SetDeadline(time.Now().Add(callLimit)); err != nil {
		return err
	}
	if _, err := waiting.Write(binary.BigEndian.AppendUint16(nil, uint16(port))); err != nil {
		return err
	}
	var answer [1]byte
	if _, err := io.ReadFull(waiting, answer[:]); err != nil {
		return err
	}
	switch answer[0] {
	case opened:
		return waiting.SetDeadline(time.Time{})
	case refused:
		return errRefused
	}
	return fmt.Errorf("the other end answered %d", answer[0])
}

// join copies between two connections until both directions have ended, and closes them.
// An end of one direction is passed on.
func join(a, b net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { pass(a, b) })
	both.Go(func() { pass(b, a) })
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}

// pass copies from one connection to another. One that breaks ends both.
func pass(from, to net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		_ = from.Close()
		_ = to.Close()
	}
}
