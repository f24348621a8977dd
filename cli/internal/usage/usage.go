// Package usage has what commands have in common where they are called: the error of a wrong
// command line, the headings of flags in a command's help, the commands in messages, and whether
// the Dagger module calls.
package usage

import (
	"fmt"

	"github.com/spf13/pflag"
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

// The headings of flags that many commands have, in a command's help below its own flags.
const (
	Run        = "Run"
	Deployment = "Deployment"
	Images     = "Images and trust"
)

// Headings returns them in the order of help. A first reader needs images and trust last.
func Headings() []string { return []string{Run, Deployment, Images} }

const annotation = "heading"

// Group shows flags of set below a heading.
func Group(set *pflag.FlagSet, heading string, names ...string) {
	for _, name := range names {
		if err := set.SetAnnotation(name, annotation, []string{heading}); err != nil {
			panic(err)
		}
	}
}

// Heading returns the heading that a flag is shown below; empty for a command's own flags.
func Heading(f *pflag.Flag) string {
	if of := f.Annotations[annotation]; len(of) > 0 {
		return of[0]
	}
	return ""
}

// Given returns the flags of set that the command line has and keep accepts, as a command line has them.
func Given(set *pflag.FlagSet, keep func(name string) bool) (out []string) {
	set.Visit(func(f *pflag.Flag) {
		if keep(f.Name) {
			out = append(out, "--"+f.Name+"="+f.Value.String())
		}
	})
	return out
}
