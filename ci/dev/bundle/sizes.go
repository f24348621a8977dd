package main

import "github.com/slipway-sh/slipway/ci/dev/build/gotool"

// sizes returns how much each command has to compile, by name: MB of Go source that it shares with
// no command before it. A processor takes three to five seconds for each MB. The figures were
// counted for the versions of November 2026.
func sizes(of []gotool.Command) map[string]int {
	large := map[string]int{
		argocd: 95, gitea: 82, terraform: 69, slipwayNode: 43, kubectl: 40, slipway: 36, traefik: 35, coredns: 20,
	}
	out := map[string]int{}
	for _, c := range of {
		out[c.Name] = max(large[c.Name], 8)
	}
	return out
}
