package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
)

// What is told of components that only a cluster knows all about.
const (
	imagesUnknown = "the images of %s are not known before the install: %s\n"
	filesUnknown  = "what comes with %s is not known before the install: %s\n"
)

// findings tells, on w, what is probably wrong in a release, and what only a cluster knows: unknown
// is the format of a component and the reason. It fails with contract.CodeUnusable if files of the
// release are wrong, and names all that is.
func findings(w io.Writer, r *platform.Release, unknown string, has contract.Contents) error {
	for _, d := range has.Doubts {
		fmt.Fprintf(w, "warning: %v\n", unreadOf(r, d))
	}
	var wrong []error
	for _, u := range has.Unread {
		if u.Wrong() {
			wrong = append(wrong, unreadOf(r, u))
		} else {
			fmt.Fprintf(w, unknown, redact.OneLine(u.Component), redact.OneLine(u.Err.Error()))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	if len(wrong) > 1 {
		wrong = append([]error{fmt.Errorf("%d problems", len(wrong))}, wrong...)
	}
	return &fault.Fault{
		Code: contract.CodeUnusable, Class: fault.Usage, Op: fmt.Sprintf("read what %s %s is made of", r.Name, r.Version),
		Err: errors.Join(wrong...), Fix: "correct the files of the platform release that are listed",
	}
}

// unreadOf is what is wrong with a file of a release, whose it is, and where.
func unreadOf(r *platform.Release, u contract.Unread) error {
	at := contract.Place(r.Path(u.File), u.Line)
	if u.Component != "" {
		at = owner(u.Component) + " (" + at + ")"
	}
	return errors.New(redact.OneLine(at + ": " + u.Err.Error()))
}

// owner is what has a file: a component, by its name, or what says itself what it is.
func owner(name string) string {
	if strings.Contains(name, " ") {
		return name
	}
	return "component " + name
}
