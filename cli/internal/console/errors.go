package console

import (
	"errors"
	"fmt"
	"slices"
)

// Exit is the outcome of a command that has printed its error itself.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Several are independent errors: each is printed with its own code and remedy.
type Several []error

func (s Several) Error() string { return errors.Join(s...).Error() }

// Unwrap returns the errors.
func (s Several) Unwrap() []error { return s }

// Together joins independent errors, each once.
func Together(errs ...error) error {
	var out Several
	var add func(err error)
	add = func(err error) {
		if err == nil {
			return
		}
		if all, ok := err.(interface{ Unwrap() []error }); ok {
			if joined := errors.Join(all.Unwrap()...); joined != nil && joined.Error() == err.Error() { // no text of its own
				for _, e := range all.Unwrap() {
					add(e)
				}
				return
			}
		}
		if !slices.ContainsFunc(out, func(e error) bool { return e.Error() == err.Error() }) {
			out = append(out, err)
		}
	}
	for _, err := range errs {
		add(err)
	}
	switch len(out) {
	case 0:
		return nil
	case 1:
		return out[0]
	}
	return out
}
