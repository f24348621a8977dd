package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
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

// closing are the arguments of iptables for the rule that keeps out of the containers' network
// what this machine would pass on to it: connections that begin elsewhere. Those of the machine
// itself are not forwarded, and those of its containers are answered. ruleRemoval finds the
// rule by its comment.
func closing(network string) []string {
	bridge := network + "0"
	return []string{"-w", "30", "-I", "FORWARD", "!", "-i", bridge, "-o", bridge, "-m", "conntrack", "--ctstate", "NEW",
		"-m", "comment", "--comment", fmt.Sprintf(`name: "%s" id: "closed"`, network), "-j", "DROP"}
}

// ruleRemoval turns what iptables-save says of a table into the input of
// iptables-restore --noflush that removes the rules of the network: those whose
// comment names it, and those of the chain of forwarding exceptions that are
// about an address in its range (prefix, such as "10.87."). Chains that belong
// to a container of the network go as well. Empty when there is nothing.
func ruleRemoval(saved, table, network, prefix string) string {
	named := fmt.Sprintf(`name: \"%s\" id:`, network)
	var rules, flushed, chains []string
	for line := range strings.Lines(saved) {
		line = strings.TrimRight(line, "\n")
		rule, ok := strings.CutPrefix(line, "-A ")
		if !ok {
			continue
		}
		chain, _, _ := strings.Cut(rule, " ")
		ours := strings.Contains(rule, named)
		forwarded := chain == "CNI-FORWARD" && (strings.Contains(rule, "-s "+prefix) || strings.Contains(rule, "-d "+prefix))
		if !ours && !forwarded {
			continue
		}
		if container, at, ok := strings.Cut(rule, " -j CNI-"); ok && ours && at != "" && container != "" {
			target := "CNI-" + strings.Fields(at)[0]
			flushed = append(flushed, "-F "+target)
			chains = append(chains, "-X "+target)
		}
		if !strings.HasPrefix(chain, "CNI-") || forwarded {
			rules = append(rules, "-D "+rule)
		}
	}
	if len(rules)+len(chains) == 0 {
		return ""
	}
	return strings.Join(slices.Concat([]string{"*" + table}, rules, flushed, chains, []string{"COMMIT", ""}), "\n")
}
