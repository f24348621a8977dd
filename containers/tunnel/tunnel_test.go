package tunnel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// free is a port on which nothing listens.
func free(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().(*net.TCPAddr).Port
}

// open opens a tunnel to each of some ports of this machine. The function that it returns
// connects to the one with an index.
func open(t *testing.T, there ...int) func(i int) *net.TCPConn {
	t.Helper()
	return openFor(t, halfOpen, there...)
}

// openFor is open with a limit of streams of which one direction has ended.
func openFor(t *testing.T, limit time.Duration, there ...int) func(i int) *net.TCPConn {
	t.Helper()
	var ports []Port
	for _, p := range there {
		ports = append(ports, Port{Here: free(t), There: p})
	}
	h, err := Listen(t.Context(), "127.0.0.1", ports)
	require.NoError(t, err)
	require.Equal(t, halfOpen, h.halfOpen)
	h.halfOpen = limit
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	enough := errors.New("the test is over")
	var both sync.WaitGroup
	ready := make(chan struct{})
	both.Go(func() { _ = Answer(ctx, between(t, h.Socket()), "127.0.0.1") })
	var ended error
	both.Go(func() { ended = h.Serve(ctx, func() { close(ready) }) })
	t.Cleanup(func() {
		cancel(enough)
		both.Wait()
		require.ErrorIs(t, ended, enough)
		require.NoDirExists(t, filepath.Dir(h.Socket()))
	})
	<-ready
	return func(i int) *net.TCPConn {
		t.Helper()
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[i].Here))
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		t.Cleanup(func() { _ = conn.Close() })
		return conn.(*net.TCPConn)
	}
}

// between is a socket that leads to another one as Dagger does: that one side is done with
// sending is known to the other only if that is the container's.
func between(t *testing.T, socket string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "t")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			container, err := l.Accept()
			if err != nil {
				return
			}
			host, err := net.Dial("unix", socket)
			if err != nil {
				_ = container.Close()
				return
			}
			go func() { _, _ = io.Copy(container, host) }()
			go func() { _, _ = io.Copy(host, container); _ = host.(*net.UnixConn).CloseWrite() }()
		}
	}()
	return l.Addr().String()
}

// serve is the port of a server that does do with each connection.
func serve(t *testing.T, do func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go do(conn)
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// shouts answers with all that it was sent, in capitals, once that has ended.
func shouts(conn net.Conn) {
	text, _ := io.ReadAll(conn)
	_, _ = io.WriteString(conn, strings.ToUpper(string(text)))
	_ = conn.Close()
}

// says sends text, and is done with sending; it returns the answer.
func says(t *testing.T, conn *net.TCPConn, text string) string {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
	require.NoError(t, conn.CloseWrite())
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(answer)
}

func TestConnectionsAreLedToTheirPorts(t *testing.T) {
	dial := open(t, serve(t, shouts), serve(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "good day"); _ = conn.Close() }))
	require.Equal(t, "HELLO", says(t, dial(0), "hello"), "the end of what was sent arrives, and the answer after it")
	answer, err := io.ReadAll(dial(1))
	require.NoError(t, err)
	require.Equal(t, "good day", string(answer))
	long := strings.Repeat("x", 5<<20)
	require.Equal(t, strings.ToUpper(long), says(t, dial(0), long))
}

// TestAnAnswerThatTakesLong: the end of what was sent does not end the other direction soon,
// and not never.
func TestAnAnswerThatTakesLong(t *testing.T) {
	require.Greater(t, halfOpen, 10*time.Minute)
	told := make(chan struct{})
	port := serve(t, func(conn net.Conn) {
		text, _ := io.ReadAll(conn)
		time.Sleep(700 * time.Millisecond)
		for err := error(nil); err == nil && string(text) == "for ever"; {
			_, err = conn.Write(make([]byte, 1<<20))
		}
		if string(text) == "for ever" {
			close(told)
		}
		_, _ = io.WriteString(conn, "at last")
		_ = conn.Close()
	})
	require.Equal(t, "at last", says(t, open(t, port)(0), "once"))
	dial := openFor(t, 200*time.Millisecond, port)
	require.Empty(t, says(t, dial(0), "once"), "it was cut")
	require.Empty(t, says(t, dial(0), "for ever"))
	<-told
}

// TestAConnectionIsNothingToOthers: neither one that nobody reads, nor those that break.
func TestAConnectionIsNothingToOthers(t *testing.T) {
	blocked := make(chan struct{})
	t.Cleanup(func() { close(blocked) })
	port := serve(t, func(conn net.Conn) {
		first, _ := bufio.NewReader(conn).ReadString('\n')
		switch first {
		case "stand still\n":
			<-blocked
			_ = conn.Close()
		case "break\n":
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		default:
			_, _ = io.WriteString(conn, "echo "+first)
			_ = conn.Close()
		}
	})
	dial := open(t, port)
	still := dial(0)
	_, err := io.WriteString(still, "stand still\n")
	require.NoError(t, err)
	require.NoError(t, still.SetWriteDeadline(time.Now().Add(500*time.Millisecond)))
	_, err = still.Write(make([]byte, 32<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "nobody reads it")
	for i := range 200 {
		broken := dial(0)
		_, err := io.WriteString(broken, "break\n")
		require.NoError(t, err)
		if i%2 == 0 {
			require.NoError(t, broken.SetLinger(0))
		}
		_ = broken.Close()
	}
	var all sync.WaitGroup
	for i := range 100 {
		conn := dial(0)
		all.Go(func() {
			text := fmt.Sprintf("%d\n", i)
			_, err := io.WriteString(conn, text)
			if err != nil {
				t.Errorf("send to %d: %v", i, err)
			}
			answer, err := io.ReadAll(conn)
			if err != nil || string(answer) != "echo "+text {
				t.Errorf("connection %d: %q, %v", i, answer, err)
			}
		})
	}
	all.Wait()
}

func TestAPortOnWhichNobodyListens(t *testing.T) {
	dial := open(t, free(t), serve(t, shouts))
	_, err := io.ReadAll(dial(0))
	require.NoError(t, err, "it is closed")
	require.Equal(t, "X", says(t, dial(1), "x"))
}

func TestAPortThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	port := l.Addr().(*net.TCPAddr).Port
	dir, err := os.MkdirTemp("", "t") // with a short path
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	_, err = Listen(t.Context(), "127.0.0.1", []Port{{Here: free(t), There: 1}, {Here: port, There: 2}})
	require.ErrorIs(t, err, ErrPort)
	require.ErrorContains(t, err, fmt.Sprintf(":%d: bind: address already in use", port))
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestTheOtherEndIsAwayForAWhile: connections wait for it.
func TestTheOtherEndIsAwayForAWhile(t *testing.T) {
	here := free(t)
	h, err := Listen(t.Context(), "127.0.0.1", []Port{{Here: here, There: serve(t, shouts)}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	all.Go(func() { _ = h.Serve(ctx, func() {}) })
	t.Cleanup(func() { cancel(); all.Wait() })
	hello := func() string {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", here))
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		return says(t, conn.(*net.TCPConn), "hello")
	}
	for range 3 {
		first, end := context.WithCancel(ctx)
		gone := make(chan struct{})
		go func() { _ = Answer(first, h.Socket(), "127.0.0.1"); close(gone) }()
		require.Equal(t, "HELLO", hello())
		end()
		<-gone
	}
}

func TestAnEndThatCannotReachTheOtherOneSaysSo(t *testing.T) {
	err := Answer(t.Context(), filepath.Join(t.TempDir(), "nothing"), "127.0.0.1")
	require.ErrorContains(t, err, "reach the other end of the tunnel: dial unix ")
}

// TestADialThroughTheTunnel reaches ports to which none of this machine leads.
func TestADialThroughTheTunnel(t *testing.T) {
	h, err := Listen(t.Context(), "127.0.0.1", nil)
	require.NoError(t, err)
	early, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = h.Dial(early, 1)
	require.ErrorContains(t, err, "the other end of the tunnel is away")

	ctx, end := context.WithCancel(t.Context())
	var both sync.WaitGroup
	both.Go(func() { _ = Answer(ctx, between(t, h.Socket()), "127.0.0.1") })
	both.Go(func() { _ = h.Serve(ctx, func() {}) })
	defer both.Wait()
	defer end()
	for port, says := range map[int]string{
		serve(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "good day"); _ = conn.Close() }): "good day",
		free(t): "",
	} {
		conn, err := h.Dial(t.Context(), port)
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, says, string(answer))
		require.NoError(t, conn.Close())
	}
}

// TestOnlyTheAddressThatWasAskedForListens: nobody else of the machine's network gets in.
func TestOnlyTheAddressThatWasAskedForListens(t *testing.T) {
	for bind, others := range map[string]bool{"127.0.0.1": false, "0.0.0.0": true, "::": true} {
		port := free(t)
		h, err := Listen(t.Context(), bind, []Port{{Here: port, There: 1}})
		require.NoError(t, err, bind)
		for address, reached := range map[string]bool{"127.0.0.1": true, "127.0.0.2": others} {
			conn, err := net.Dial("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
			require.Equal(t, reached, err == nil, "%s of %s: %v", address, bind, err)
			if err == nil {
				require.NoError(t, conn.Close())
			}
		}
		h.Close()
	}
}
