package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/fault"
)

// codeUncoded: something went wrong that has no code of its own.
const codeUncoded fault.Code = "RUN-003"

// complain prints err with code and remedy, whose commands hint completes, and
// returns the exit code.
func complain(w io.Writer, name string, hint func(string) string, err error) int {
	if err == nil {
		return int(fault.OK)
	}
	if code, ok := errors.AsType[exit](err); ok {
		return int(code)
	}
	if u, ok := errors.AsType[usage.Error](err); ok {
		fmt.Fprintf(w, "%s: %s\nSee %s --help.\n", name, hint(u.Error()), name)
		return int(fault.Usage)
	}
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		f = &fault.Fault{Code: codeUncoded, Class: fault.Bug, Err: err, Fix: "report this together with the output above"}
	}
	fmt.Fprintf(w, "\nerror %s: %s\n", f.Code, err)
	if f.Fix != "" {
		fmt.Fprintf(w, "  remedy: %s\n", hint(f.Fix))
	}
	if f.Log != "" {
		fmt.Fprintf(w, "  log:    %s in the run's report %s\n", f.Log, hint("(slipway report, or dagger call report)"))
	}
	if _, known := explanations()[string(f.Code)]; known {
		fmt.Fprintf(w, "  more:   %s#%s\n", errorsPage, strings.ToLower(string(f.Code)))
	}
	return int(f.Class)
}
