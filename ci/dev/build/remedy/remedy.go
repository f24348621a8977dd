// Package remedy prints the errors of the build programs.
package remedy

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/slipway-sh/slipway/fault"
)

// Print writes err for a person: message, code and remedy. Only main calls it.
func Print(w io.Writer, err error) {
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		fmt.Fprintf(w, "error: %v\n", err)
		return
	}
	fmt.Fprintf(w, "error %s: %v\n  remedy: %s\n", f.Code, err, f.Fix)
}

// LastLines is the end of what a tool printed: there it says why it failed.
func LastLines(text string, n int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
