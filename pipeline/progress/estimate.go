package progress

import (
	"time"

	"github.com/slipway-sh/slipway/pipeline"
)

// Stand is how far a step is. The zero value is a step that has not started.
type Stand struct {
	Ran   time.Duration // since it started
	Ended bool          // however it did
}

// Remaining is how long the rest of a run takes when every step takes as long as
// usual: the longest path through what has not ended, and with a limit on the
// steps that run at the same time (0 is none) no less than the work left by that
// limit. A step that is over its time counts as about to end. False when a step
// that has not ended has no usual duration: there is nothing to go by.
//
// The result is never negative. It does not grow while time passes, nor when a
// step ends.
func Remaining(graph []pipeline.Node, usual map[pipeline.Key]time.Duration, now map[pipeline.Key]Stand, parallel int) (time.Duration, bool) {
	var longest, work time.Duration
	ends := make(map[pipeline.Key]time.Duration, len(graph))
	for _, n := range graph { // each after what it needs
		at := now[n.Key]
		if at.Ended {
			continue // whatever it needed
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
