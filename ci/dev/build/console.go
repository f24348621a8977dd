package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/slipway-sh/slipway/fault"
)

// Exit prints err for a person, unless it is nil: message, code and remedy. It returns the exit code.
func Exit(ctx context.Context, w io.Writer, err error) int {
	switch {
	case err == nil:
		return int(fault.OK)
	case ctx.Err() != nil:
		fmt.Fprintln(w, "stopped:", err)
		return int(fault.Cancelled)
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		fmt.Fprintf(w, "error %s: %v\n  remedy: %s\n", f.Code, err, f.Fix)
	} else {
		fmt.Fprintf(w, "error: %v\n", err)
	}
	return int(fault.ClassOf(err))
}

// LastLines is the end of what a tool printed: there it says why it failed.
func LastLines(text string, n int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
