package containers

import (
	"net"
	"strings"
	"testing"

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
