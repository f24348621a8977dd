// Package flock has the system's locks on files: the system gives one up when the last process
// that has it has ended, however it ends. Where there are none, the error is
// errors.ErrUnsupported.
package flock

import "errors"

// ErrBusy means that somebody else has a lock.
var ErrBusy = errors.New("somebody else has it")
