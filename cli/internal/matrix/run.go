package matrix

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// Outcome is how a cell ended.
type Outcome string

// The outcomes.
const (
	Upgraded  Outcome = "upgraded"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled" // it is begun anew by the next run
)

// Phase is a command of a cell.
type Phase struct {
	Name    string        `json:"name"` // "install"
	Took    time.Duration `json:"nanoseconds"`
	Exit    int           `json:"exit"`
	Killed  int           `json:"killed,omitempty"` // how often it was killed before it went through
	Command string        `json:"command"`          // as a person types it
}

// Result is what came of a cell.
type Result struct {
	Cell       Cell      `json:"cell"`
	Deployment string    `json:"deployment"`
	Outcome    Outcome   `json:"outcome"`
	Began      time.Time `json:"began"`
	Phases     []Phase   `json:"phases"`
	Code       string    `json:"code,omitempty"`   // of the fault, for Failed
	Reason     string    `json:"reason,omitempty"` // last words of the command that failed
	Again      string    `json:"again,omitempty"`  // command that runs this cell alone, for Failed
	// Counts are what the checks of the workloads have counted, by name, all together.
	Counts    map[string]int64 `json:"counts,omitempty"`
	Package   string           `json:"package,omitempty"`   // file with the run that failed
	Reproduce string           `json:"reproduce,omitempty"` // command that replays it, where that is an install or upgrade
}

// Took is how long all commands of the cell took.
func (r Result) Took() time.Duration {
	var sum time.Duration
	for _, p := range r.Phases {
		sum += p.Took
	}
	return sum
}

// Run calls do with each cell, for so many at the same time, and returns the results in the
// order of the cells. When ctx ends, no further cell begins: the rest is Cancelled.
func Run(ctx context.Context, cells []Cell, parallel int, do func(context.Context, Cell) Result) []Result {
	out := make([]Result, len(cells))
	var running errgroup.Group
	running.SetLimit(parallel)
	for i, c := range cells {
		running.Go(func() error {
			out[i] = Result{Cell: c, Outcome: Cancelled}
			if ctx.Err() == nil {
				out[i] = do(ctx, c)
			}
			return nil
		})
	}
	_ = running.Wait() // no cell returns an error
	return out
}
