// Package remedy holds the error type of the build programs: what was tried,
// why it went wrong and which command puts it right.
package remedy

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Error is a failure that the user can do something about.
type Error struct {
	Code string // stable, such as "ENG-003"; listed in docs/errors.md
	Op   string // what was attempted: "install host packages"
	Fix  string // imperative; names a command where one exists
	Err  error  // the cause; never nil
}

// Error is the operation and its cause; code and remedy are for Print.
func (e *Error) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Print writes err for a person: message, code and remedy. Only main calls it.
func Print(w io.Writer, err error) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		fmt.Fprintf(w, "error: %v\n", err)
		return
	}
	fmt.Fprintf(w, "error %s: %v\n  remedy: %s\n", e.Code, err, e.Fix)
}

// LastLines is the end of what a tool printed: there it says why it failed.
func LastLines(text string, n int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
