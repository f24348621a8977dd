// Package pipeline runs a graph of steps.
//
// The edges of the graph are values: a step names what it needs by the handles
// that earlier calls of Add returned, so that a cycle or a misspelt dependency
// does not compile. Outputs flow from step to step with their types. The engine
// knows nothing of what the steps do: no containers, no clusters, no files.
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

// String is "stage/name".
func (k Key) String() string { return k.Stage + "/" + k.Name }

// Status is how a step stands.
type Status string

// The statuses of a step. The first two are passing, all others final.
const (
	Pending   Status = "pending"
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Reused    Status = "reused"    // succeeded, with the output of an earlier run
	Failed    Status = "failed"    // it returned an error
	Blocked   Status = "blocked"   // a step that it needs failed
	Skipped   Status = "skipped"   // it, or a step that it needs, was skipped on purpose
	Cancelled Status = "cancelled" // the run was stopped before or while it ran
)

// OK tells whether a step with this status has an output.
func (s Status) OK() bool { return s == Succeeded || s == Reused }

// Detail is what a step may say about itself, see Describe.
type Detail struct {
	Reused  bool   // the output is that of an earlier run
	Attempt int    // which attempt gave the result, counted from 1; 0 when there are no attempts
	Log     string // where the step's log is, relative to the run's directory
}

// Result is how a step ended.
type Result struct {
	Key
	Status   Status
	Err      error     // why it is failed, blocked or cancelled; nil otherwise
	Started  time.Time // zero when it was never started
	Finished time.Time // when its status became final
	Detail   Detail
}

// Elapsed is how long the step ran; zero when it was never started.
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
	byKey  map[Key]*node
	sealed bool // Run was called
}

// Step is a handle on a step and its output.
type Step[T any] struct {
	n   *node
	out T
}

// Key is the step's name.
func (s *Step[T]) Key() Key { return s.n.key }

// Value is the step's output. It panics unless the step has succeeded, which a
// step that needs it may rely on.
func (s *Step[T]) Value() T {
	switch r, ok := s.Result(); {
	case !ok:
		panic(fmt.Sprintf("pipeline: value of %s read before it settled: is it among the needs?", s.n.key))
	case !r.Status.OK():
		panic(fmt.Sprintf("pipeline: value of %s read, which is %s", s.n.key, r.Status))
	}
	return s.out
}

// Result is how the step ended; false while it has not. A step that depends on
// Settled(s) reads it to learn what happened.
func (s *Step[T]) Result() (Result, bool) {
	if r := s.n.result.Load(); r != nil {
		return *r, true
	}
	return Result{}, false
}

// Dep is a dependency: a *Step, or the result of Settled.
type Dep interface{ edge() edge }

type edge struct {
	to      *node
	settled bool // whatever its outcome
}

func (e edge) edge() edge { return e }

func (s *Step[T]) edge() edge {
	if s == nil {
		return edge{}
	}
	return edge{to: s.n}
}

// Settled weakens a dependency: wait until the step has ended, however it did,
// even if it never started. A step with such a dependency is a clean-up step:
// it runs although the run was stopped or cancelled, with a context that neither
// reaches and that ends after Options.CleanupTimeout.
func Settled(d Dep) Dep {
	if d == nil {
		panic("pipeline: Settled(nil)")
	}
	e := d.edge()
	e.settled = true
	return e
}

// Add adds a step that starts once all of needs have succeeded. It panics when
// the key is incomplete or taken, run is nil, a need is nil or of another
// pipeline, or the pipeline has been run.
func Add[T any](p *Pipeline, key Key, run func(context.Context) (T, error), needs ...Dep) *Step[T] {
	s := &Step[T]{n: &node{key: key}}
	if run == nil {
		panic(fmt.Sprintf("pipeline: %s has nothing to run", key))
	}
	s.n.run = func(ctx context.Context) (err error) {
		s.out, err = run(ctx)
		return err
	}
	p.add(s.n, needs)
	return s
}

func (p *Pipeline) add(n *node, needs []Dep) {
	switch {
	case p.sealed:
		panic(fmt.Sprintf("pipeline: %s added after the run began", n.key))
	case n.key.Stage == "" || n.key.Name == "":
		panic(fmt.Sprintf("pipeline: step %q has no stage or no name", n.key))
	case p.byKey[n.key] != nil:
		panic(fmt.Sprintf("pipeline: two steps are named %s", n.key))
	}
	for _, d := range needs {
		var e edge
		if d != nil {
			e = d.edge()
		}
		if e.to == nil {
			panic(fmt.Sprintf("pipeline: %s needs a nil step", n.key))
		}
		if p.byKey[e.to.key] != e.to {
			panic(fmt.Sprintf("pipeline: %s needs %s, which is of another pipeline", n.key, e.to.key))
		}
		n.needs = append(n.needs, e)
		n.cleanup = n.cleanup || e.settled
	}
	if p.byKey == nil {
		p.byKey = map[Key]*node{}
	}
	n.index = len(p.nodes)
	p.byKey[n.key] = n
	p.nodes = append(p.nodes, n)
}

// Node describes a step of the graph.
type Node struct {
	Key
	Needs   []Key `json:"needs,omitempty"`   // must have succeeded
	Settled []Key `json:"settled,omitempty"` // must have ended
}

// Graph is the steps in the order in which they were added.
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

// node is a step without the type of its output.
type node struct {
	key     Key
	needs   []edge
	cleanup bool
	run     func(context.Context) error
	index   int                    // in the order of adding
	result  atomic.Pointer[Result] // set once, when the status is final

	// Only the scheduler reads and writes these.
	started   bool
	blockedBy []*node // the failed steps that block it
}
