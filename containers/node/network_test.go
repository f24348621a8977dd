package main

import (
	"net"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
)

// TestWhatIsSentToNoServiceStaysInside: it does not leave by the default route, where somebody
// might answer it.
func TestWhatIsSentToNoServiceStaysInside(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the test, and its network with it
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		t.Skipf("a network of its own takes root: %v", err)
	}
	lo, err := netlink.LinkByName("lo")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetUp(lo))
	require.NoError(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "outside"}}))
	out, err := netlink.LinkByName("outside")
	require.NoError(t, err)
	address, err := netlink.ParseAddr("192.0.2.2/24")
	require.NoError(t, err)
	require.NoError(t, netlink.AddrAdd(out, address))
	require.NoError(t, netlink.LinkSetUp(out))
	require.NoError(t, netlink.RouteAdd(&netlink.Route{LinkIndex: out.Attrs().Index, Gw: net.IPv4(192, 0, 2, 1)}))
	leaves := func(to string) bool {
		routes, err := netlink.RouteGet(net.ParseIP(to))
		require.NoError(t, err)
		require.Len(t, routes, 1)
		require.Equal(t, "192.0.2.2", routes[0].Src.String())
		return routes[0].LinkIndex == out.Attrs().Index
	}
	require.True(t, leaves(apiServiceIP))

	for range 2 { // a node that starts again has the route already
		require.NoError(t, keepInside(lo, address.IP))
	}
	require.False(t, leaves(apiServiceIP))
	require.False(t, leaves("10.96.99.99"))
	require.True(t, leaves("198.51.100.1"))
}
