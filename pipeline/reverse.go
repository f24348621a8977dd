package pipeline

import (
	"context"
	"fmt"
	"slices"
)

// AddReverse adds the removal of a graph to p, another pipeline. Each node for which
// removal returns a function becomes a step with the same key, which starts once the
// removals of everything that depended on the node have succeeded, whether by needs
// or by Settled, and even across nodes without a removal. Every step also depends on
// needs.
//
// nodes are in the order of Pipeline.Graph; removal is called once for each. The
// steps are returned in the order in which they were added, beginning with the last
// node. It panics where Add does, and when a node comes before one that it needs.
func AddReverse(p *Pipeline, nodes []Node, removal func(Key) func(context.Context) error, needs ...Dep) []*Step[struct{}] {
	var steps []*Step[struct{}]
	waits := map[Key]map[int]bool{} // what a removal needs, as indexes in steps
	done := map[Key]bool{}
	for _, n := range slices.Backward(nodes) {
		after := waits[n.Key]
		if run := removal(n.Key); run != nil {
			deps := slices.Clone(needs)
			for i := range steps { // not over the map, so that the order is stable
				if after[i] {
					deps = append(deps, steps[i])
				}
			}
			after = map[int]bool{len(steps): true}
			steps = append(steps, Add(p, n.Key, func(ctx context.Context) (struct{}, error) { return struct{}{}, run(ctx) }, deps...))
		}
		done[n.Key] = true
		for _, k := range slices.Concat(n.Needs, n.Settled) {
			if done[k] {
				panic(fmt.Sprintf("pipeline: %s comes before %s, which it needs", n.Key, k))
			}
			if waits[k] == nil {
				waits[k] = map[int]bool{}
			}
			for i := range after {
				waits[k][i] = true
			}
		}
	}
	return steps
}
