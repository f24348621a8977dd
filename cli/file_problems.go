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

// unusable fails with contract.CodeUnusable if the files of a release are wrong, and names all that is.
func unusable(r *platform.Release, unread []contract.Unread) error {
	var list []error
	for _, u := range unread {
		if u.Wrong() {
			list = append(list, unreadOf(r, u))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: contract.CodeUnusable, Class: fault.Usage, Op: fmt.Sprintf("read what %s %s is made of", r.Name, r.Version),
		Err: listed(list), Fix: "correct the files of the platform release that are listed",
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

// printDoubts names fields that are probably wrong.
func printDoubts(w io.Writer, r *platform.Release, doubts []contract.Unread) {
	for _, d := range doubts {
		fmt.Fprintf(w, "warning: %v\n", unreadOf(r, d))
	}
}

// owner is what has a file: a component, by its name, or what says itself what it is.
func owner(name string) string {
	if strings.Contains(name, " ") {
		return name
	}
	return "component " + name
}

// listed are problems, each on a line of its own.
func listed(problems []error) error {
	lines := make([]error, len(problems))
	for i, p := range problems {
		lines[i] = errors.New(redact.OneLine(p.Error()))
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return errors.Join(append([]error{fmt.Errorf("%d problems", len(lines))}, lines...)...)
}

// printUnread names what only a cluster knows: format is of a component, and the reason.
func printUnread(w io.Writer, format string, unread []contract.Unread) {
	for _, u := range unread {
		if !u.Wrong() {
			fmt.Fprintf(w, format, redact.OneLine(u.Component), redact.OneLine(u.Err.Error()))
		}
	}
}
