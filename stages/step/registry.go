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
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
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
	run Code[json.RawMessage, json.RawMessage]
	// verify returns the output that still holds; nil: the step runs every time.
	verify func(ctx context.Context, env *Env, in, out json.RawMessage) (json.RawMessage, error)
	// preview finds out what run would change; nil: run changes nothing that stays.
	preview Code[json.RawMessage, json.RawMessage]
	nothing json.RawMessage // the output without a result
}

// Code observes, converges and verifies. It may be called again at any moment, also
// after it was killed half-way. In and Out cross as JSON: see package contract.
type Code[In, Out any] = func(ctx context.Context, env *Env, in In) (Out, error)

// Register adds the code of a step that runs every time. It panics when the step has
// code already, when its name is not made of lower-case letters, digits and hyphens,
// or when run is nil: mistakes in the composition root.
func Register[In, Out any](r *Registry, d contract.Step[In, Out], run Code[In, Out]) {
	add(r, d, run, nil)
}

// RegisterRepeatable is Register for code that can check by a dry run (see package dryrun)
// whether an earlier result holds: it fails if it would change something, and otherwise
// its output replaces the earlier one.
func RegisterRepeatable[In, Out any](r *Registry, d contract.Step[In, Out], run Code[In, Out]) {
	code := typed(run)
	add(r, d, run, func(ctx context.Context, env *Env, in, _ json.RawMessage) (json.RawMessage, error) {
		return code(dryrun.Context(ctx), env, in)
	})
	Previewed(r, d, run)
}

// Looks has a preview take the last result of a step whose code changes nothing that stays,
// although it is repeatable: it tries out what is installed.
func Looks[In, Out any](r *Registry, d contract.Step[In, Out]) {
	s := r.steps[d.String()]
	s.preview = nil
	r.steps[d.String()] = s
}

// Previewed adds the code that finds out in a preview what a step would change.
func Previewed[In, Out any](r *Registry, d contract.Step[In, Out], code Code[In, Out]) {
	s := r.steps[d.String()]
	s.preview = typed(code)
	r.steps[d.String()] = s
}

// RegisterVerified is Register for code whose earlier results verify checks: it returns an
// error unless out, an earlier output for the same input, still holds. verify must be
// cheap and change nothing.
func RegisterVerified[In, Out any](r *Registry, d contract.Step[In, Out], run Code[In, Out],
	verify func(ctx context.Context, env *Env, in In, out Out) error) {
	add(r, d, run, func(ctx context.Context, env *Env, in, out json.RawMessage) (json.RawMessage, error) {
		var input In
		if err := decode(in, &input); err != nil {
			return nil, fmt.Errorf("read the input: %w", err)
		}
		var output Out
		if err := decode(out, &output); err != nil {
			return nil, fmt.Errorf("read the earlier output: %w", err)
		}
		return out, verify(ctx, env, input, output)
	})
}

func add[In, Out any](r *Registry, d contract.Step[In, Out], run Code[In, Out],
	verify func(ctx context.Context, env *Env, in, out json.RawMessage) (json.RawMessage, error)) {
	id := d.String()
	if !journal.Name(d.Stage) || !journal.Name(d.Name) {
		panic("step " + id + " has no name for a file")
	}
	if run == nil {
		panic("step " + id + " has no code")
	}
	if _, taken := r.steps[id]; taken {
		panic("step " + id + " is registered twice")
	}
	if r.steps == nil {
		r.steps = map[string]untypedStep{}
	}
	nothing, err := json.Marshal(*new(Out))
	if err != nil {
		panic("the output of step " + id + " cannot be encoded: " + err.Error())
	}
	r.steps[id] = untypedStep{run: typed(run), verify: verify, nothing: nothing}
}

// typed is run between JSON and JSON.
func typed[In, Out any](run Code[In, Out]) Code[json.RawMessage, json.RawMessage] {
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

// decode is strict, so that a version mismatch between conductor and step is found before
// anything is changed.
func decode(b []byte, v any) error {
	if len(b) == 0 {
		b = []byte("null")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	d.UseNumber() // settings of a release keep their digits
	return d.Decode(v)
}
