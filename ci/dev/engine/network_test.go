package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRuleRemoval(t *testing.T) {
	nat := `*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [1:60]
:CNI-aaaa - [0:0]
:CNI-bbbb - [0:0]
-A POSTROUTING -s 10.87.0.2/32 -m comment --comment "name: \"slip12\" id: \"one\"" -j CNI-aaaa
-A POSTROUTING -s 10.90.0.2/32 -m comment --comment "name: \"other\" id: \"two\"" -j CNI-bbbb
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A CNI-aaaa -d 10.87.0.0/16 -m comment --comment "name: \"slip12\" id: \"one\"" -j ACCEPT
-A CNI-aaaa ! -d 224.0.0.0/4 -m comment --comment "name: \"slip12\" id: \"one\"" -j MASQUERADE
-A CNI-bbbb -d 10.90.0.0/16 -m comment --comment "name: \"other\" id: \"two\"" -j ACCEPT
COMMIT
`
	require.Equal(t, `*nat
-D POSTROUTING -s 10.87.0.2/32 -m comment --comment "name: \"slip12\" id: \"one\"" -j CNI-aaaa
-F CNI-aaaa
-X CNI-aaaa
COMMIT
`, ruleRemoval(nat, "nat", "slip12", "10.87."))

	saved := "*filter\n-A " + strings.Join(closing("slip12")[3:], " ") + "\nCOMMIT\n"
	saved = strings.Replace(saved, `name: "slip12" id: "closed"`, `"name: \"slip12\" id: \"closed\""`, 1) // as iptables-save has it
	require.Equal(t, `*filter
-D FORWARD ! -i slip120 -o slip120 -m conntrack --ctstate NEW -m comment --comment "name: \"slip12\" id: \"closed\"" -j DROP
COMMIT
`, ruleRemoval(saved, "filter", "slip12", "10.87."), "the rule that closes the network goes with the engine")
	require.Empty(t, ruleRemoval(saved, "filter", "other1", "10.90."))

	filter := `*filter
:FORWARD ACCEPT [0:0]
:CNI-ADMIN - [0:0]
:CNI-FORWARD - [0:0]
-A FORWARD -m comment --comment "CNI firewall plugin rules" -j CNI-FORWARD
-A CNI-FORWARD -m comment --comment "CNI firewall plugin admin overrides" -j CNI-ADMIN
-A CNI-FORWARD -d 10.87.0.2/32 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A CNI-FORWARD -s 10.87.0.2/32 -j ACCEPT
-A CNI-FORWARD -s 10.90.0.2/32 -j ACCEPT
-A INPUT -s 10.87.0.2/32 -j DROP
COMMIT
`
	require.Equal(t, `*filter
-D CNI-FORWARD -d 10.87.0.2/32 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-D CNI-FORWARD -s 10.87.0.2/32 -j ACCEPT
COMMIT
`, ruleRemoval(filter, "filter", "slip12", "10.87."))
	require.Empty(t, ruleRemoval(filter, "filter", "slip12", "10.99."))
	require.Empty(t, ruleRemoval("", "nat", "slip12", "10.87."))
}
