package main

import "github.com/slipway-sh/slipway/ci/dev/build/gotool"

// sizes says how much each command has to compile, by name, in MB of Go source that no command
// before it has compiled: a processor takes three to five seconds for each. As counted for the
// versions of 2026-11; others differ little from them.
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
