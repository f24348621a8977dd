// Package usage has the error of a wrong command line: exit code 2, and a pointer to
// the command's help.
package usage

import (
	"fmt"
)

// Error is a mistake in the command line.
type Error struct{ err error }

// Errorf makes one.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }

// Wrap makes one of err.
func Wrap(err error) error { return Error{err} }

func (e Error) Error() string { return e.err.Error() }

// Unwrap is what the flag's own code said.
func (e Error) Unwrap() error { return e.err }
