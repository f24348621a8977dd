package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// clearTraces removes what an engine leaves in the machine's network, which it
// shares: its bridge and its rules. It runs in the engine's root, before and
// after the engine.
func clearTraces(network, cidr string) error {
	errs := []error{removeBridge(network + "0")}
	for _, table := range []string{"nat", "filter"} {
		errs = append(errs, clearRules(table, network, cidr))
	}
	return errors.Join(errs...)
}

func closeNetwork(network string) error {
	if out, err := exec.Command("iptables", closing(network)...).CombinedOutput(); err != nil {
		return fmt.Errorf("iptables: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

func clearRules(table, network, cidr string) error {
	out, err := exec.Command("iptables-save", "-t", table).Output()
	if err != nil {
		return fmt.Errorf("iptables-save -t %s: %w", table, err)
	}
	// "10.87.0.0/16": what its addresses begin with.
	prefix, _ := strings.CutSuffix(cidr, "0.0/16")
	script := ruleRemoval(string(out), table, network, prefix)
	if script == "" {
		return nil
	}
	cmd := exec.Command("iptables-restore", "--noflush")
	cmd.Stdin = strings.NewReader(script)
	var output bytes.Buffer
	cmd.Stderr = &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("iptables-restore: %w: %s", err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}

// siocBridgeDelete is SIOCBRDELBR: delete the bridge of that name.
const siocBridgeDelete = 0x89a1

func removeBridge(name string) error {
	if _, err := net.InterfaceByName(name); err != nil {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("remove the bridge %s: %w", name, err)
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq(name)
	if err != nil {
		return fmt.Errorf("remove the bridge %s: %w", name, err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return fmt.Errorf("remove the bridge %s: read its flags: %w", name, err)
	}
	req.SetUint16(req.Uint16() &^ unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("take the bridge %s down: %w", name, err)
	}
	if err := unix.IoctlIfreq(fd, siocBridgeDelete, req); err != nil {
		return fmt.Errorf("remove the bridge %s: %w", name, err)
	}
	return nil
}
