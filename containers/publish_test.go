package containers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/tunnel"
	"github.com/slipway-sh/slipway/fault"
)

func TestPortsArePublishedThroughAContainerOfTheirOwn(t *testing.T) {
	var ran []string
	client := engine(t, func(fields []string) (any, string) {
		if path := strings.Join(fields, " "); strings.HasSuffix(path, "sync") || strings.Contains(path, "withExec") {
			ran = fields
			return nil, "no such program"
		}
		return "id", ""
	})
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	cluster := Open(client, "dev", &Images{Node: client.Container(), Toolchain: client.Container()}, Access{}).Cluster("", port, 1)
	never := func() { t.Error("they are not published") }
	require.ErrorIs(t, cluster.Publish(t.Context(), never), tunnel.ErrPort)
	require.Empty(t, ran)

	require.NoError(t, l.Close())
	cluster.ports = nil
	err = cluster.Publish(t.Context(), never)
	require.ErrorIs(t, err, &fault.Fault{Code: codeLost})
	require.ErrorContains(t, err, "publish the cluster's ports: ")
	require.ErrorContains(t, err, "no such program")
	require.Subset(t, ran, []string{"withServiceBinding", "withUnixSocket", "withExec"})
	l, err = net.Listen("tcp", l.Addr().String())
	require.NoError(t, err, "the port is free again")
	require.NoError(t, l.Close())
}

// TestPublishedByDagger: as on Windows.
func TestPublishedByDagger(t *testing.T) {
	api, other := free(t), free(t)
	var problem atomic.Value
	listening, closed := make(chan func(port int)), make(chan struct{})
	over := sync.OnceFunc(func() { close(listening) })
	defer over()
	client := engine(t, func(fields []string) (any, string) {
		if fields[len(fields)-1] != "up" {
			return "id", ""
		}
		if said := problem.Load(); said != nil {
			return nil, said.(string)
		}
		var all []net.Listener
		listening <- func(port int) {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				t.Error(err)
				return
			}
			all = append(all, l)
		}
		<-listening // closed at the end
		for _, l := range all {
			_ = l.Close()
		}
		close(closed)
		return nil, ""
	})
	cluster := Open(client, "dev", &Images{Node: client.Container(), Toolchain: client.Container()}, Access{}).Cluster("127.0.0.1", api, other)
	ctx, cancel := context.WithCancelCause(t.Context())
	ready, ended := make(chan struct{}), make(chan error)
	go func() { ended <- cluster.up(ctx, func() { close(ready) }) }()
	listen := <-listening
	listen(api)
	select {
	case <-ready:
		t.Fatal("one of the ports is not published")
	case <-time.After(500 * time.Millisecond):
	}
	listen(other)
	<-ready
	enough := errors.New("the user has had enough")
	cancel(enough)
	require.ErrorIs(t, <-ended, enough)
	over()
	<-closed

	problem.Store("listen tcp: address already in use")
	err := cluster.up(t.Context(), func() { t.Error("they are not published") })
	require.ErrorIs(t, err, &fault.Fault{Code: codeLost})
	require.ErrorContains(t, err, "publish the cluster's ports: ")
	require.ErrorContains(t, err, "address already in use")
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: api})
	require.NoError(t, err)
	require.NoError(t, l.SetDeadline(time.Now().Add(500*time.Millisecond)))
	_, err = l.Accept()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "nobody looks for the port any more")
	require.NoError(t, l.Close())
}

// free is a port on which nothing listens.
func free(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().(*net.TCPAddr).Port
}
