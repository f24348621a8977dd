// Package step runs one step inside its container: it reads the request, checks whether an
// earlier result still holds, runs the step's function, and always writes log, result and
// journal entry to the state volume.
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
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// Registry holds the steps a program can run. The zero value is ready to use.
// It is not safe for use while steps are being registered.
type Registry struct {
	// Stores open the buckets with deployments' state, by the scheme of their URLs.
	Stores map[string]store.Opener

	steps map[string]untypedStep
}

// untypedStep is the code of a step behind JSON, so that a map can hold steps whose inputs
// and outputs have different types.
type untypedStep struct {
	run Func[json.RawMessage, json.RawMessage]
	// verify returns the output that still holds; nil: the step runs every time.
	verify func(ctx context.Context, env *Env, in, earlier json.RawMessage) (json.RawMessage, error)
	plan   Func[json.RawMessage, json.RawMessage] // see Code.Planned; may be nil
	none   json.RawMessage                        // the output without a result
}

// Func is a function of a step. In and Out cross as JSON: see package contract.
type Func[In, Out any] = func(ctx context.Context, env *Env, in In) (Out, error)

// Code is what a step does: Once, Repeatable or Verified. Its run observes, converges and
// verifies; it may be called again at any moment, also after it was killed half-way.
type Code[In, Out any] struct {
	run, plan Func[In, Out]
	verify    func(ctx context.Context, env *Env, in In, earlier Out) (Out, error)
}

// Once is code that runs every time.
func Once[In, Out any](run Func[In, Out]) Code[In, Out] { return Code[In, Out]{run: run} }

// Repeatable is code that also plans, in an environment with a plan: it looks, and says what it
// would change. An earlier result holds if that is nothing, and the output of the plan replaces it.
func Repeatable[In, Out any](run Func[In, Out]) Code[In, Out] {
	return Code[In, Out]{run: run, plan: run, verify: func(ctx context.Context, env *Env, in In, _ Out) (Out, error) {
		return Unchanged(run)(ctx, env, in)
	}}
}

// Unchanged plans instead of running, and fails with a plan.ErrChange if run would change something.
func Unchanged[In, Out any](run Func[In, Out]) Func[In, Out] {
	return func(ctx context.Context, env *Env, in In) (Out, error) {
		p := plan.Verify(env.ID)
		out, err := run(ctx, env.Planned(p), in)
		if err == nil {
			err = p.Err()
		}
		return out, err
	}
}

// Verified is code whose earlier results verify checks: it returns an error unless earlier, an
// output for the same input, still holds. It must be cheap and change nothing.
func Verified[In, Out any](run Func[In, Out], verify func(ctx context.Context, env *Env, in In, earlier Out) error) Code[In, Out] {
	return Code[In, Out]{run: run, verify: func(ctx context.Context, env *Env, in In, earlier Out) (Out, error) {
		return earlier, verify(ctx, env.Planned(plan.Verify(env.ID)), in, earlier)
	}}
}

// Planned is c with the function that finds out for a plan what it would change. Nil: it changes
// nothing that stays, and a plan takes its last result.
func (c Code[In, Out]) Planned(plan Func[In, Out]) Code[In, Out] {
	c.plan = plan
	return c
}

// Register adds the code of a step. It panics for a second or missing code, and for a name that has more
// than lower-case letters, digits and hyphens.
func Register[In, Out any](r *Registry, d contract.Step[In, Out], code Code[In, Out]) {
	id := d.String()
	if !journal.Name(d.Stage) || !journal.Name(d.Name) {
		panic("step " + id + " has no name for a file")
	}
	if code.run == nil {
		panic("step " + id + " has no code")
	}
	if _, taken := r.steps[id]; taken {
		panic("step " + id + " is registered twice")
	}
	none, err := json.Marshal(*new(Out))
	if err != nil {
		panic("the output of step " + id + " cannot be encoded: " + err.Error())
	}
	s := untypedStep{run: typed(code.run), none: none}
	if code.plan != nil {
		s.plan = typed(code.plan)
	}
	if code.verify != nil {
		s.verify = func(ctx context.Context, env *Env, in, earlier json.RawMessage) (json.RawMessage, error) {
			var out Out
			if err := decode(earlier, &out); err != nil {
				return nil, fmt.Errorf("read the earlier output: %w", err)
			}
			return typed(func(ctx context.Context, env *Env, in In) (Out, error) { return code.verify(ctx, env, in, out) })(ctx, env, in)
		}
	}
	if r.steps == nil {
		r.steps = map[string]untypedStep{}
	}
	r.steps[id] = s
}

// typed is run between JSON and JSON.
func typed[In, Out any](run Func[In, Out]) Func[json.RawMessage, json.RawMessage] {
	return func(ctx context.Context, env *Env, in json.RawMessage) (json.RawMessage, error) {
		var input In
		if err := decode(in, &input); err != nil {
			return nil, badRequest("input", err)
		}
		out, err := run(ctx, env, input)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
}

// Names returns the registered steps as "stage/name", sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.steps)) }

// decode is strict: it finds a version mismatch with the conductor before anything is changed.
func decode(b []byte, v any) error {
	if len(b) == 0 {
		b = []byte("null")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
