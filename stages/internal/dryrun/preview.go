package dryrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// ErrLater means that a preview cannot look any further: what comes next waits for something
// that only a run brings about.
var ErrLater = errors.New("only a run brings that about")

// Preview is what steps would change, as they find it out in a context of Watch: they go on
// after each change as if it had been made. It is safe for concurrent use, and the zero
// value is ready to use.
type Preview struct {
	mu      sync.Mutex
	objects map[string]Object
	order   []string
	labels  map[string]string
	notes   []Note
}

// Object is an object of the cluster that a step has looked at or would write.
type Object struct {
	Step   string         // "stage/step" that would write it last
	Before map[string]any // as it is; nil if it is not there
	After  map[string]any // as it would be; nil if it would be deleted
	Why    string         // why After is not what the API server says, and what else changes
	// Unknown: nobody can say what a run would make of it, for the reason in Why.
	Unknown bool
}

// Note is what a step tells besides.
type Note struct {
	Step  string
	Value any
}

type previewKey struct{}

type watched struct {
	preview *Preview
	step    string
}

// Watch returns a context derived from ctx that forbids writing, in which p gets to know
// what the step would write.
func (p *Preview) Watch(ctx context.Context, step string) context.Context {
	return context.WithValue(Context(ctx), previewKey{}, watched{p, step})
}

// Previewing returns the preview that ctx belongs to, nil if to none, and the step.
func Previewing(ctx context.Context) (p *Preview, step string) {
	w, _ := ctx.Value(previewKey{}).(watched)
	if !On(ctx) {
		return nil, ""
	}
	return w.preview, w.step
}

// Pass is Check for a write that a preview sees anyway, or that says nothing of the platform:
// a preview goes on.
func Pass(ctx context.Context, format string, args ...any) error {
	if p, _ := Previewing(ctx); p != nil {
		return nil
	}
	return Check(ctx, format, args...)
}

// Tell notes what the step would do besides writing objects. It does nothing outside of a
// preview.
func Tell(ctx context.Context, value any) {
	p, step := Previewing(ctx)
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, Note{step, value})
}

// Label has a value that is made anew in each preview shown as what it is: "generated".
func Label(ctx context.Context, value, label string) {
	p, _ := Previewing(ctx)
	if p == nil || value == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.labels == nil {
		p.labels = map[string]string{}
	}
	p.labels[value] = label
}

// Labels are what values of Label are shown as.
func (p *Preview) Labels() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.labels)
}

// Put notes that the object at a path of the API would be after; nil: it would be deleted.
// before is what it is, and counts when the path is new to the preview.
func (p *Preview) Put(path, step string, before, after map[string]any, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.objects == nil {
		p.objects = map[string]Object{}
	}
	o, known := p.objects[path]
	if !known {
		p.order = append(p.order, path)
		o.Before = before
	}
	o.Step, o.After = step, after
	if why != "" {
		o.Why = why
	}
	p.objects[path] = o
}

// Doubt is Put for an object of which nobody can say what a run would make, and why.
func (p *Preview) Doubt(path, step string, before, after map[string]any, why string) {
	p.Put(path, step, before, after, why)
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.objects[path]
	o.Unknown = true
	p.objects[path] = o
}

// At is the object at a path of the API as it would be; known is false where no step would
// write it.
func (p *Preview) At(path string) (o Object, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, known = p.objects[path]
	return o, known
}

// Objects are those that steps have looked at or would write, in the order in which the
// steps came to them.
func (p *Preview) Objects() []Object {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Object, 0, len(p.order))
	for _, path := range p.order {
		out = append(out, p.objects[path])
	}
	return out
}

// Notes are what steps have told.
func (p *Preview) Notes() []Note {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.notes)
}

// Later is an ErrLater that says what for.
func Later(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrLater)
}

// Amend replaces what an object would be that a step has come to, and says why.
func (p *Preview) Amend(before map[string]any, step string, after map[string]any, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for path, o := range p.objects {
		if same(o.Before, before) {
			o.Step, o.After, o.Why = step, after, why
			p.objects[path] = o
		}
	}
}

// Comes reports whether a step would make the object at a path of the API.
func (p *Preview) Comes(path string) bool {
	o, known := p.At(path)
	return known && o.After != nil
}

// same tells whether two objects are one.
func same(a, b map[string]any) bool {
	meta := func(o map[string]any) map[string]any { m, _ := o["metadata"].(map[string]any); return m }
	uid := meta(a)["uid"]
	return uid != nil && uid == meta(b)["uid"]
}

type patientKey struct{}

// Patient returns a context derived from ctx in which a preview waits as a run does.
func Patient(ctx context.Context) context.Context { return context.WithValue(ctx, patientKey{}, true) }

// Waits reports whether somebody who waits in ctx looks more than once.
func Waits(ctx context.Context) bool {
	p, _ := Previewing(ctx)
	patient, _ := ctx.Value(patientKey{}).(bool)
	return p == nil || patient
}
