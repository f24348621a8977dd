// Package step runs one step inside its container: it reads the request, looks
// whether an earlier result still holds, runs the step's function, and leaves
// log, result and journal entry in the state volume whatever happens.
package step

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/dryrun"
)

// Step is a step's code. In and Out cross as JSON: see package contract.
type Step[In, Out any] struct {
	// Run observes, converges and verifies. It may be called again at any
	// moment, also after it was killed half-way.
	Run func(ctx context.Context, env *Env, in In) (Out, error)
	// Verify tells whether out, an earlier output for the same input, is still
	// true now; an error means that it is not. It must be cheap and change
	// nothing.
	Verify func(ctx context.Context, env *Env, in In, out Out) error
	// Repeat, in place of Verify, tells that Run itself can look: in a dry run
	// (see package dryrun) it fails where it would change something, and its output
	// then replaces the earlier one. A step with neither runs every time.
	Repeat bool
}

// Registry holds the steps a program can run. The zero value is ready to use.
// It is not safe for use while steps are being registered.
type Registry struct {
	// Stores open the buckets with deployments' state, by the scheme of their URLs.
	Stores map[string]store.Opener

	steps map[string]erased
}

// erased is a Step without its types.
type erased struct {
	run func(ctx context.Context, env *Env, in json.RawMessage) (json.RawMessage, error)
	// verify returns the output that still holds; nil: the step runs every time.
	verify func(ctx context.Context, env *Env, in, out json.RawMessage) (json.RawMessage, error)
}

// Register adds s under stage/name. It panics when the name is taken or is not
// made of lower-case letters, digits and hyphens, or when Run is nil: mistakes in
// the composition root.
func Register[In, Out any](r *Registry, stage, name string, s Step[In, Out]) {
	id := stage + "/" + name
	if !journal.Name(stage) || !journal.Name(name) {
		panic("step " + id + " has no name for a file")
	}
	if s.Run == nil {
		panic("step " + id + " has no Run")
	}
	if s.Verify != nil && s.Repeat {
		panic("step " + id + " is verified in two ways")
	}
	if _, taken := r.steps[id]; taken {
		panic("step " + id + " is registered twice")
	}
	e := erased{run: func(ctx context.Context, env *Env, in json.RawMessage) (json.RawMessage, error) {
		var input In
		if err := decode(in, &input); err != nil {
			return nil, badInput(err)
		}
		out, err := s.Run(ctx, env, input)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}}
	switch {
	case s.Repeat:
		e.verify = func(ctx context.Context, env *Env, in, _ json.RawMessage) (json.RawMessage, error) {
			return e.run(dryrun.Context(ctx), env, in)
		}
	case s.Verify != nil:
		e.verify = func(ctx context.Context, env *Env, in, out json.RawMessage) (json.RawMessage, error) {
			var input In
			if err := decode(in, &input); err != nil {
				return nil, fmt.Errorf("read the input: %w", err)
			}
			var output Out
			if err := decode(out, &output); err != nil {
				return nil, fmt.Errorf("read the earlier output: %w", err)
			}
			return out, s.Verify(ctx, env, input, output)
		}
	}
	if r.steps == nil {
		r.steps = map[string]erased{}
	}
	r.steps[id] = e
}

// Names returns the registered steps as "stage/name", sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.steps)) }

// decode is strict, so that a conductor and a step of different versions are
// found out before anything is touched.
func decode(b []byte, v any) error {
	if len(b) == 0 {
		b = []byte("null")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
