package matrix

import (
	"context"
	"slices"
	"sync"
	"time"
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
	Engine     string    `json:"engine,omitempty"` // address of its Dagger engine; empty: the one of the environment
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

// Runner runs the cells of a matrix.
type Runner struct {
	Parallel int      // how many cells run at the same time, on all engines together; at least 1
	Engines  []string // addresses, of which each cell gets one for all its commands; none: that of the environment
	// Do runs a cell on an engine. Cells run at the same time.
	Do func(ctx context.Context, c Cell, engine string) Result
	// Prefers is the engine on which a cell has something to go on with, which it gets if that
	// is one of Engines and not dead; nil, or empty: none.
	Prefers func(Cell) string
	// Answers reports whether an engine can be reached. It is asked after a failure, where
	// there are others: the cells of one that cannot run again on one of these.
	Answers func(ctx context.Context, engine string) bool
	// Ended is told of each result as it comes, by one cell at a time; nil tells nobody.
	Ended func(Result)
}

// fleet knows how many cells each engine runs.
type fleet struct {
	mu   sync.Mutex
	runs map[string]int
	dead []string
}

// take chooses the engine that is preferred, else the one that runs the fewest cells; the
// first of all when every one is dead, so that its error is told.
func (f *fleet) take(engines []string, preferred string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	best, found := engines[0], false
	for _, e := range engines {
		switch {
		case slices.Contains(f.dead, e):
		case e == preferred, !found, best != preferred && f.runs[e] < f.runs[best]:
			best, found = e, true
		}
	}
	f.runs[best]++
	return best
}

// give says that a cell has ended on an engine, which is not given again if it is lost. It
// reports whether there is another one.
func (f *fleet) give(engine string, lost bool, engines []string) (another bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs[engine]--
	if lost && !slices.Contains(f.dead, engine) {
		f.dead = append(f.dead, engine)
	}
	return len(f.dead) < len(engines)
}

// Run runs cells and returns their results in their order. When ctx ends, no further cell
// begins: those that did not are Cancelled.
func (r Runner) Run(ctx context.Context, cells []Cell) []Result {
	engines := r.Engines
	if len(engines) == 0 {
		engines = []string{""}
	}
	f := &fleet{runs: map[string]int{}}
	out := make([]Result, len(cells))
	free := make(chan struct{}, max(r.Parallel, 1))
	var telling sync.Mutex
	var wg sync.WaitGroup
	for i, c := range cells {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			out[i] = Result{Cell: c, Outcome: Cancelled}
			continue
		}
		wg.Go(func() {
			defer func() { <-free }()
			out[i] = r.cell(ctx, c, f, engines)
			telling.Lock()
			defer telling.Unlock()
			if r.Ended != nil {
				r.Ended(out[i])
			}
		})
	}
	wg.Wait()
	return out
}

// cell runs a cell, again if its engine has died.
func (r Runner) cell(ctx context.Context, c Cell, f *fleet, engines []string) Result {
	for {
		preferred := ""
		if r.Prefers != nil {
			preferred = r.Prefers(c)
		}
		engine := f.take(engines, preferred)
		result := r.Do(ctx, c, engine)
		lost := len(engines) > 1 && result.Outcome == Failed && r.Answers != nil && !r.Answers(ctx, engine)
		if another := f.give(engine, lost, engines); !lost || !another || ctx.Err() != nil {
			return result
		}
	}
}
