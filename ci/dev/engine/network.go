package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
)

// freeCIDR is an address range for the containers that no interface of this
// machine has. addrs are the machine's addresses, without those of the
// engine's own bridge.
func freeCIDR(addrs []*net.IPNet) (string, error) {
	for second := 87; second < 128; second++ {
		_, want, err := net.ParseCIDR(fmt.Sprintf("10.%d.0.0/16", second))
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(addrs, func(a *net.IPNet) bool { return want.Contains(a.IP) || a.Contains(want.IP) }) {
			return want.String(), nil
		}
	}
	return "", errors.New("find a network for containers: 10.87.0.0/16 to 10.127.0.0/16 are all taken")
}

// hostAddrs lists the addresses of the machine's interfaces but that of bridge.
func hostAddrs(bridge string) ([]*net.IPNet, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var all []*net.IPNet
	for _, i := range interfaces {
		if i.Name == bridge {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it went away
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				all = append(all, n)
			}
		}
	}
	return all, nil
}
