// Package origin says where the container of a call comes from: out of a bundle or
// a registry. It knows no Dagger, so that its tests need no generated code.
package origin

import (
	"fmt"
	"strings"
	"unicode"
)

// Refusal is a failure before Slipway's program runs. As the failures of that
// program, it has a code of docs/errors.md, a remedy and a class.
type Refusal struct {
	Code  string
	Class Class
	Op    string // what was attempted: "read the lock file"
	Fix   string // imperative; ends with a command where one exists
	Err   error  // the cause; never nil
}

// Class is the exit code of the call.
type Class int

// The classes of refusals, as docs/errors.md lists them.
const (
	Bug       Class = 1
	Usage     Class = 2
	Preflight Class = 3
)

// Error is all that a person reads: code, operation, cause and remedy. Of what others say in it,
// such as a registry, nothing does something to a terminal.
func (r *Refusal) Error() string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return -1
	}, fmt.Sprintf("%s: %s: %s\n  remedy: %s", r.Code, r.Op, r.Err, r.Fix))
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// Extensions are the values with which the dagger CLI ends as after an exec: with
// the class as its exit code.
func (r *Refusal) Extensions() map[string]any {
	return map[string]any{"_type": "EXEC_ERROR", "exitCode": int(r.Class)}
}

// The codes of refusals. Those that the program has too are documented there.
const (
	codeNoBundle = "BUN-001"
	codeIndex    = "BUN-002"
	codeContent  = "BUN-003"
	codePlatform = "BUN-004"
	codeNoImages = "BUN-006"
	codeTrust    = "BUN-007"
	codeLockFile = "LCK-003"
	codeNoImage  = "REG-007"
	codePull     = "REG-009"
	codeNowhere  = "REG-010"
)
