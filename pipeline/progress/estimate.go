package progress

import (
	"time"

	"github.com/slipway-sh/slipway/pipeline"
)

// Stand is how far a step has got. The zero value is a step that has not started.
type Stand struct {
	Ran   time.Duration // since it started
	Ended bool          // with any status
}

// Remaining estimates how long the rest of a run takes if every step takes as long as
// usual: the longest path through the steps that have not ended, but, if parallel
// limits the steps that run at the same time (0: it does not), at least the remaining
// work divided by that limit. A step that is over its usual time counts as about to
// end. It returns false if a step that has not ended has no usual duration.
//
// The result is never negative, and grows neither while time passes nor when a step
// ends.
func Remaining(graph []pipeline.Node, usual map[pipeline.Key]time.Duration, now map[pipeline.Key]Stand, parallel int) (time.Duration, bool) {
	var longest, work time.Duration
	ends := make(map[pipeline.Key]time.Duration, len(graph))
	for _, n := range graph { // each after what it needs
		at := now[n.Key]
		if at.Ended {
			continue
		}
		takes, known := usual[n.Key]
		if !known {
			return 0, false
		}
		takes = max(0, takes-max(0, at.Ran))
		var starts time.Duration
		for _, needs := range [][]pipeline.Key{n.Needs, n.Settled} {
			for _, k := range needs {
				starts = max(starts, ends[k])
			}
		}
		ends[n.Key] = starts + takes
		longest = max(longest, ends[n.Key])
		work += takes
	}
	if parallel > 0 {
		longest = max(longest, work/time.Duration(parallel))
	}
	return longest, true
}
