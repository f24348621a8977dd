package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"syscall"

	"github.com/vishvananda/netlink"
)

type outside struct {
	address net.IP // by which other containers reach it
	mtu     int    // bytes; pods must not send larger packets
}

// prepareNetwork adds the node's stable address, keeps what is meant for Services inside, and
// lets pods reach the outside.
func prepareNetwork(ctx context.Context) (outside, error) {
	o, err := findOutside()
	if err != nil {
		return o, err
	}
	link, err := addStableAddress()
	if err != nil {
		return o, err
	}
	if err := keepInside(link, o.address); err != nil {
		return o, err
	}
	masquerade := exec.CommandContext(ctx, "iptables", "-w", "5", "-t", "nat", "-A", "POSTROUTING",
		"-s", podCIDR, "!", "-d", podCIDR, "-m", "comment", "--comment", "pods to the outside", "-j", "MASQUERADE")
	if out, err := masquerade.CombinedOutput(); err != nil {
		return o, fmt.Errorf("let pods reach the outside: %w: %s", err, bytes.TrimSpace(out))
	}
	return o, nil
}

// findOutside looks at the interface with the default route.
func findOutside() (outside, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return outside{}, fmt.Errorf("list the routes: %w", err)
	}
	for _, r := range routes {
		if r.LinkIndex == 0 || (r.Dst != nil && !r.Dst.IP.IsUnspecified()) {
			continue
		}
		link, err := netlink.LinkByIndex(r.LinkIndex)
		if err != nil {
			return outside{}, fmt.Errorf("look up the interface of the default route: %w", err)
		}
		addresses, err := netlink.AddrList(link, netlink.FAMILY_V4)
		if err != nil {
			return outside{}, fmt.Errorf("list the addresses of %s: %w", link.Attrs().Name, err)
		}
		for _, a := range addresses {
			if a.IP.IsGlobalUnicast() {
				return outside{address: a.IP, mtu: link.Attrs().MTU}, nil
			}
		}
	}
	return outside{}, errors.New("find the container's address: no interface with a default route and an IPv4 address")
}

// addStableAddress gives a dummy interface the node's address, or the loopback
// interface where the kernel has no dummy ones. It returns that interface.
func addStableAddress() (netlink.Link, error) {
	const name = "slipway0"
	var link netlink.Link = &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: name}}
	if err := netlink.LinkAdd(link); err != nil && !errors.Is(err, syscall.EEXIST) {
		loopback, lerr := netlink.LinkByName("lo")
		if lerr != nil {
			return nil, fmt.Errorf("add the interface %s: %w", name, errors.Join(err, lerr))
		}
		link = loopback
	} else if link, err = netlink.LinkByName(name); err != nil {
		return nil, fmt.Errorf("look up the interface %s: %w", name, err)
	}
	address, err := netlink.ParseAddr(nodeAddress + "/32")
	if err != nil {
		return nil, fmt.Errorf("parse the node's address: %w", err)
	}
	if err := netlink.AddrReplace(link, address); err != nil {
		return nil, fmt.Errorf("set the node's address: %w", err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return nil, fmt.Errorf("set the interface %s up: %w", link.Attrs().Name, err)
	}
	return link, nil
}

// keepInside routes what is sent to a Service that kube-proxy has no rule for, or none yet, to
// an interface on which it is lost. By the default route somebody outside might answer it, and
// a connection stays where it went first: the API server would go on asking there. Packets
// with a rule have another destination before they are routed for good. They are sent from
// address, as without this route.
func keepInside(link netlink.Link, address net.IP) error {
	_, services, err := net.ParseCIDR(serviceCIDR)
	if err != nil {
		return fmt.Errorf("parse the network of the Services: %w", err)
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: services, Src: address, Scope: netlink.SCOPE_LINK}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("route %s to the interface %s: %w", services, link.Attrs().Name, err)
	}
	return nil
}
