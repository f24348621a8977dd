package main

import (
	"fmt"
	"slices"
	"strings"
)

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
