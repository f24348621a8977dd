// Package pipeline runs a graph of steps.
//
// The edges of the graph are values: a step names what it needs by the handles
// that earlier calls of Add returned, so that a cycle or a misspelt dependency
// does not compile. Outputs flow from step to step with their types. The engine
// knows nothing about what the steps do: no containers, no clusters, no files.
package pipeline

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Key names a step. It is unique within a pipeline.
type Key struct {
	Stage string `json:"stage"`
	Name  string `json:"step"`
}

// String returns "stage/name".
func (k Key) String() string { return k.Stage + "/" + k.Name }

// Status is the state of a step.
type Status string

// The statuses of a step. The first two are transient, all others final.
const (
	Pending    Status = "pending"
	Running    Status = "running"
	Succeeded  Status = "succeeded"
	Reused     Status = "reused"     // succeeded, with the output of an earlier run
	Failed     Status = "failed"     // it returned an error
	Warned     Status = "warned"     // it returned an error, and is Optional
	Blocked    Status = "blocked"    // a step that it needs failed
	Skipped    Status = "skipped"    // it was skipped on purpose, or a step that it needs was skipped or warned
	Cancelled  Status = "cancelled"  // the run was stopped before or while it ran
	Unselected Status = "unselected" // Options.Until leaves it out
	// Interrupted: it was running when its run was killed. Run never returns it; it
	// only occurs in the record of a run.
	Interrupted Status = "interrupted"
)

// OK reports whether a step with this status has an output.
func (s Status) OK() bool { return s == Succeeded || s == Reused }

// Detail is what a step may report about itself; see Step.Describe.
type Detail struct {
	Reused bool   // the output is that of an earlier run
	Log    string // where the step's log is, relative to the run's directory
	// Counts are what the step has counted, by name, whether it succeeded or not.
	Counts map[string]int64
}

// Result is how a step ended.
type Result struct {
	Key
	Status   Status
	Err      error     // why it is failed, warned, blocked or cancelled; nil otherwise
	Started  time.Time // zero when it was never started
	Finished time.Time // when its status became final
	Detail   Detail
}

// Elapsed returns how long the step ran; zero when it was never started.
func (r Result) Elapsed() time.Duration {
	if r.Started.IsZero() {
		return 0
	}
	return r.Finished.Sub(r.Started)
}

// Pipeline is a graph of steps. The zero value is empty and ready to use. It is
// built by one goroutine and run once.
type Pipeline struct {
	nodes  []*node
	keys   map[Key]struct{}
	sealed bool // Run was called
}

// Step is a handle on a step and its output.
type Step[T any] struct {
	n   node
	fn  func(context.Context) (T, error)
	out T
}

// Key returns the step's name.
func (s *Step[T]) Key() Key { return s.n.key }

func (s *Step[T]) run(ctx context.Context) (err error) {
	s.out, err = s.fn(ctx)
	return err
}

// Describe records details about the step; the last call wins. Only the function of the step
// may call it, and no goroutine that outlives that.
func (s *Step[T]) Describe(d Detail) { s.n.result.Detail = d }

// Value returns the step's output. It panics unless the step has succeeded, which a
// step that needs it may rely on.
func (s *Step[T]) Value() T {
	switch {
	case !s.n.final.Load():
		panic(fmt.Sprintf("pipeline: value of %s read before it settled: is it among the needs?", s.n.key))
	case !s.n.result.Status.OK():
		panic(fmt.Sprintf("pipeline: value of %s read, which is %s", s.n.key, s.n.result.Status))
	}
	return s.out
}

// Result returns how the step ended; ok is false until it has. A step that depends
// on Settled(s) calls it to learn what happened.
func (s *Step[T]) Result() (r Result, ok bool) {
	if s.n.final.Load() {
		return s.n.result, true
	}
	return Result{}, false
}

// Dep is a dependency: a *Step, or the result of Settled or Spare.
type Dep interface{ edge() edge }

type edge struct {
	to      *node
	settled bool // whatever its outcome
	spare   bool // also when it warned or was skipped
}

func (e edge) edge() edge { return e }

func (s *Step[T]) edge() edge {
	if s == nil {
		return edge{}
	}
	return edge{to: &s.n}
}

// Settled weakens a dependency: it waits until the step has a final status, whatever
// that is, even if the step never started. A step with such a dependency is a
// clean-up step: it runs even when the run was stopped or cancelled, with a context
// that is independent of both and ends after Options.CleanupTimeout. Options.Until
// describes when it does not run.
func Settled(d Dep) Dep {
	if d == nil {
		panic("pipeline: Settled(nil)")
	}
	e := d.edge()
	e.settled = true
	return e
}

// Spare weakens a dependency: when the step warned (see Optional) or was skipped, the one
// that needs it is not skipped. It learns so from Result. In all else it is a need.
func Spare(d Dep) Dep {
	if d == nil {
		panic("pipeline: Spare(nil)")
	}
	e := d.edge()
	e.spare = true
	return e
}

// Add adds a step that starts once all of needs have succeeded. Its context ends
// with the run's, and at the latest when run has returned. Add panics when
// the key is incomplete or taken, run is nil, a need is nil or of another
// pipeline, or the pipeline has been run.
func Add[T any](p *Pipeline, key Key, run func(context.Context) (T, error), needs ...Dep) *Step[T] {
	s := &Step[T]{n: node{key: key}, fn: run}
	if run == nil {
		panic(fmt.Sprintf("pipeline: %s has nothing to run", key))
	}
	s.n.step = s
	p.add(&s.n, needs)
	return s
}

func (p *Pipeline) add(n *node, needs []Dep) {
	switch {
	case p.sealed:
		panic(fmt.Sprintf("pipeline: %s added after the run began", n.key))
	case n.key.Stage == "" || n.key.Name == "":
		panic(fmt.Sprintf("pipeline: step %q has no stage or no name", n.key))
	}
	n.needs = make([]edge, len(needs))
	for i, d := range needs {
		var e edge
		if d != nil {
			e = d.edge()
		}
		if e.to == nil {
			panic(fmt.Sprintf("pipeline: %s needs a nil step", n.key))
		}
		if e.to.p != p {
			panic(fmt.Sprintf("pipeline: %s needs %s, which is of another pipeline", n.key, e.to.key))
		}
		n.needs[i] = e
		n.cleanup = n.cleanup || e.settled
	}
	if p.keys == nil {
		p.keys = map[Key]struct{}{}
	}
	if p.keys[n.key] = struct{}{}; len(p.keys) == len(p.nodes) { // it was there
		panic(fmt.Sprintf("pipeline: two steps are named %s", n.key))
	}
	n.p, n.index = p, len(p.nodes)
	p.nodes = append(p.nodes, n)
}

// Node describes a step of the graph.
type Node struct {
	Key
	Needs   []Key `json:"needs,omitempty"`   // must have succeeded
	Settled []Key `json:"settled,omitempty"` // must have ended
}

// Graph returns the steps in the order in which they were added.
func (p *Pipeline) Graph() []Node {
	out := make([]Node, len(p.nodes))
	for i, n := range p.nodes {
		out[i].Key = n.key
		for _, e := range n.needs {
			if e.settled {
				out[i].Settled = append(out[i].Settled, e.to.key)
			} else {
				out[i].Needs = append(out[i].Needs, e.to.key)
			}
		}
	}
	return out
}

// Optional turns the failure of a step into a warning: its status is Warned, its
// result holds the error, the run's error does not include it, and the steps that
// need it are skipped, unless they do with Spare. It returns s, so that it can wrap a call of Add. It panics
// when the pipeline has been run.
func Optional[T any](s *Step[T]) *Step[T] {
	if s.n.p.sealed {
		panic(fmt.Sprintf("pipeline: %s made optional after the run began", s.n.key))
	}
	s.n.optional = true
	return s
}

// node is a step without the type of its output.
type node struct {
	p        *Pipeline
	key      Key
	needs    []edge
	cleanup  bool
	optional bool
	step     interface{ run(context.Context) error }
	index    int // in the order of adding, in which each comes after what it needs

	// result belongs to the worker that executes the step, then to the scheduler. It
	// is complete and no longer changes once final is set.
	result Result
	final  atomic.Bool

	// Used by the scheduler only.
	out     bool // it takes no part in the run
	started bool
}

// failed returns the status of the step when it fails.
func (n *node) failed() Status {
	if n.optional {
		return Warned
	}
	return Failed
}
