// Package fault defines the errors that reach a user: each has a stable code,
// the operation that went wrong and what to do about it.
package fault

import (
	"encoding/json"
	"errors"
	"strings"
)

// Code identifies a kind of failure, such as "CFG-001". Codes are API: a code is
// never renumbered and never reused for something else.
//
// Each is a constant in the package that raises it, and documented in
// docs/errors.yaml.
type Code string

// CodeBug is the code of an error that says that Slipway itself is wrong, or that has no code.
const CodeBug = "RUN-003"

// Class groups faults by what a caller can do about them. Its value is the exit
// code of the process.
type Class int

// The classes; docs/errors.md lists them.
const (
	// OK: nothing went wrong.
	OK Class = 0
	// Bug: Slipway itself is wrong; please report it with the run's directory
	// (`slipway report`).
	Bug Class = 1
	// Usage: the command line, the configuration or the platform release must be
	// corrected; nothing was changed, unless a step returned the error.
	Usage Class = 2
	// Preflight: the machine, the engine or the bundle does not meet the
	// requirements; nothing was changed.
	Preflight Class = 3
	// Step: a step failed; steps that had finished are not repeated.
	Step Class = 4
	// Timeout: something did not happen in time; the error includes what was seen
	// last.
	Timeout Class = 5
	// Locked: another run works on the deployment.
	Locked Class = 6
	// Cancelled: the user or the caller stopped the run.
	Cancelled Class = 7
)

// Fault is an error that tells the user what to do next.
type Fault struct {
	Code  Code
	Class Class
	Op    string // what was attempted: "apply the Terraform root"
	Fix   string // imperative; ends with a command where one exists
	Log   string // where the full log is, relative to the run's report; may be empty
	Err   error  // the cause; never nil
}

// Error returns the operation and its cause, without code and remedy: only the
// program prints those, in its last lines.
func (f *Fault) Error() string {
	if f.Err == nil { // only a target of errors.Is
		return string(f.Code)
	}
	if f.Op == "" {
		return f.Err.Error()
	}
	op := strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(f.Op) // it may name a file of others
	return op + ": " + f.Err.Error()
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Is matches on the code, so that a bare &Fault{Code: c} works as a target.
func (f *Fault) Is(target error) bool {
	t, ok := target.(*Fault)
	return ok && t.Code == f.Code
}

// Map returns the fault with its texts as change makes them: without a secret, for
// example. If no text changes, it returns the fault itself, with its causes.
func (f *Fault) Map(change func(string) string) *Fault {
	text := f.Err.Error()
	out := &Fault{f.Code, f.Class, change(f.Op), change(f.Fix), f.Log, f.Err}
	if changed := change(text); changed != text {
		out.Err = errors.New(changed)
	} else if out.Op == f.Op && out.Fix == f.Fix {
		return f
	}
	return out
}

// Whole returns the first fault in err's tree, with what err says around it; false if there
// is none.
func Whole(err error) (*Fault, bool) {
	f, coded := errors.AsType[*Fault](err)
	if !coded || error(f) == err { //nolint:errorlint // whether err is the fault itself
		return f, coded
	}
	outer := *f
	outer.Op, outer.Err = "", err
	return &outer, true
}

// All returns the first fault of each error that err joins; none where there is none.
func All(err error) []*Fault {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case *Fault:
		return []*Fault{e}
	case interface{ Unwrap() error }:
		return All(e.Unwrap())
	case interface{ Unwrap() []error }:
		var out []*Fault
		for _, err := range e.Unwrap() {
			out = append(out, All(err)...)
		}
		return out
	}
	return nil
}

// Map is Fault.Map of any error, which may have a fault in it; nil for nil.
func Map(err error, change func(string) string) error {
	if err == nil {
		return nil
	}
	outer, coded := Whole(err)
	if !coded {
		if text := err.Error(); change(text) != text {
			return errors.New(change(text))
		}
		return err
	}
	if changed := outer.Map(change); changed != outer {
		return changed
	}
	return err
}

// ClassOf returns the class of the first fault in err's tree: OK for nil, Bug for an
// error without a fault.
func ClassOf(err error) Class {
	if err == nil {
		return OK
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f.Class
	}
	return Bug
}

// wire is how a fault crosses from a step's container to the conductor.
type wire struct {
	Code    Code   `json:"code"`
	Class   Class  `json:"class"`
	Op      string `json:"op"`
	Fix     string `json:"fix"`
	Log     string `json:"log,omitempty"`
	Message string `json:"message"`
}

// MarshalJSON encodes the cause as text.
func (f *Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{f.Code, f.Class, f.Op, f.Fix, f.Log, f.Err.Error()})
}

// UnmarshalJSON restores a fault whose cause is text.
func (f *Fault) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*f = Fault{w.Code, w.Class, w.Op, w.Fix, w.Log, errors.New(w.Message)}
	return nil
}
