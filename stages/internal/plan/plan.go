// Package plan has what the steps of a workflow would change, as they find it out. A step
// that is handed a part of a plan only looks: its clients send no write, and the plan gets to
// know what they would have written.
package plan

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
)

var (
	// ErrLater means that a plan cannot look any further: what comes next waits for something
	// that only a run brings about.
	ErrLater = errors.New("only a run brings that about")
	// ErrChange means that a step would change something.
	ErrChange = errors.New("it would be changed")
)

// Later is an ErrLater that says what for.
func Later(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrLater)
}

// Plan is what steps would change: they go on after each change as if it had been made. It is
// safe for concurrent use, and the zero value is ready to use.
type Plan struct {
	mu      sync.Mutex
	objects map[string]Object
	order   []string
	labels  map[string]string
	notes   []any
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

// Step is the part of a plan that one step finds out. A step that runs has nil: it may write, and
// what it says of a plan goes nowhere.
type Step struct {
	*Plan
	name     string
	verifies bool

	mu      sync.Mutex
	changes string // the first change; empty: none
}

// Of is the part of p that a step, "stage/step", finds out.
func (p *Plan) Of(step string) *Step { return &Step{Plan: p, name: step} }

// Verify is a plan of one step alone that also looks whether what is there works, and waits for
// that as a run does, as long as it has found no change.
func Verify(step string) *Step { return &Step{Plan: &Plan{}, name: step, verifies: true} }

// Verifies reports whether s is of Verify.
func (s *Step) Verifies() bool { return s != nil && s.verifies }

// Previews reports whether only what would change counts, and not whether what is there works.
func (s *Step) Previews() bool { return s != nil && !s.verifies }

// Waits reports whether something that waits looks more than once.
func (s *Step) Waits() bool { return s == nil || s.verifies && s.Err() == nil }

// Err is an ErrChange that says what the step would change first; nil if nothing.
func (s *Step) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == "" {
		return nil
	}
	return fmt.Errorf("%s: %w", s.changes, ErrChange)
}

// Change notes that the step would change something. What a plan shows of it, if that is no
// object, is for Tell.
func (s *Step) Change(format string, args ...any) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == "" {
		s.changes = fmt.Sprintf(format, args...)
	}
}

// Note adds something to what a plan shows besides objects.
func (s *Step) Note(note any) {
	if s == nil {
		return
	}
	s.Plan.mu.Lock()
	defer s.Plan.mu.Unlock()
	s.notes = append(s.notes, note)
}

// Label makes a plan show a value that is made anew in each plan as what it is: "generated".
func (s *Step) Label(value, label string) {
	if s == nil || value == "" {
		return
	}
	s.Plan.mu.Lock()
	defer s.Plan.mu.Unlock()
	if s.labels == nil {
		s.labels = map[string]string{}
	}
	s.labels[value] = label
}

// Put notes that the object at a path of the API would be after; nil: it would be deleted.
// before is what it is, and counts when the path is new to the plan.
func (s *Step) Put(path string, before, after map[string]any, why string) {
	s.put(path, before, Object{After: after, Why: why})
}

// Doubt is Put for an object of which nobody can say what a run would make, and why.
func (s *Step) Doubt(path string, before, after map[string]any, why string) {
	s.put(path, before, Object{After: after, Why: why, Unknown: true})
}

func (s *Step) put(path string, before map[string]any, o Object) {
	if o.Unknown || !Same(before, o.After) {
		s.Change("write %s", path)
	}
	s.Plan.mu.Lock()
	defer s.Plan.mu.Unlock()
	was, known := s.objects[path]
	if !known {
		if s.objects == nil {
			s.objects = map[string]Object{}
		}
		s.order = append(s.order, path)
		was.Before = before
	}
	o.Step, o.Before, o.Unknown = s.name, was.Before, o.Unknown || was.Unknown
	if o.Why == "" {
		o.Why = was.Why
	}
	s.objects[path] = o
}

// Amend replaces what an object that the step has come to would be, and says why.
func (s *Step) Amend(before, after map[string]any, why string) {
	s.Plan.mu.Lock()
	defer s.Plan.mu.Unlock()
	if path, o := s.find(before); path != "" {
		o.Step, o.After, o.Why = s.name, after, why
		s.objects[path] = o
	}
}

// Found is what the plan has of an object, whose UID tells which it is.
func (p *Plan) Found(object map[string]any) (o Object, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	path, o := p.find(object)
	return o, path != ""
}

func (p *Plan) find(object map[string]any) (string, Object) {
	for path, o := range p.objects {
		if uid := uidOf(object); uid != nil && uid == uidOf(o.Before) {
			return path, o
		}
	}
	return "", Object{}
}

// At is the object at a path of the API as it would be; known is false where no step would
// write it.
func (p *Plan) At(path string) (o Object, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, known = p.objects[path]
	return o, known
}

// Objects are those that steps have looked at or would write, in the order in which the
// steps came to them.
func (p *Plan) Objects() []Object {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Object, 0, len(p.order))
	for _, path := range p.order {
		out = append(out, p.objects[path])
	}
	return out
}

// Notes are what steps have noted.
func (p *Plan) Notes() []any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.notes)
}

// Labels are what values of Label are shown as.
func (p *Plan) Labels() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.labels)
}

// Same reports whether two states of an object are one but for the status, which its controller
// writes, and for what the API server keeps of each write.
func Same(a, b map[string]any) bool { return reflect.DeepEqual(content(a), content(b)) }

func content(o map[string]any) map[string]any {
	if o == nil {
		return nil
	}
	o = maps.Clone(o)
	delete(o, "status")
	if m, is := o["metadata"].(map[string]any); is {
		m = maps.Clone(m)
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			delete(m, field)
		}
		o["metadata"] = m
	}
	return o
}

func uidOf(o map[string]any) any {
	m, _ := o["metadata"].(map[string]any)
	return m["uid"]
}
