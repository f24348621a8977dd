package slipway

import (
	"errors"
	"net"
	"strings"
)

// Bridge is this machine's address on the network of an engine that make engine started, where
// containers reach it. The network is there once a container has run.
func Bridge() (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range all {
		if !strings.HasPrefix(i.Name, "slip") {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			continue // it went meanwhile
		}
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
				return n.IP.String(), nil
			}
		}
	}
	return "", errors.New("there is no network of an engine of make engine on this machine")
}
